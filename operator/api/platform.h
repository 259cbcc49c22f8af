// The nodes on which the pods of a job with Sluice's programs may run.
//
// All of them have one architecture. Executors make batches with the user's own libraries, from the trainer's image:
// it may be of one architecture, and between two of them the last bits of a tensor may differ.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/api/training_job.h"
#include "src/base/result.h"

namespace sluice::api {

// The one that the trainer's node selector asks for; else the first. REQUIRES: there is one.
std::string architecture_of(const TrainingJob& training_job, const std::vector<std::string>& architectures);

// Refuses node selectors, of the trainer and of the worker template, for nodes on which Sluice's programs do not run.
// `architectures`: of Sluice's image. Mode Off has no such pods, and refuses nothing.
// Errors: InvalidArgument with the field and the way out.
Result<void> check_platform(const TrainingJob& training_job, const std::vector<std::string>& architectures);

}  // namespace sluice::api
