// spec.dataWorkers.template of a TrainingJob: what its user says of the workers' pods, over what Sluice derives from
// the trainer's.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "operator/api/training_job.h"
#include "src/base/result.h"

namespace sluice::api {

// Whether the template leaves to Sluice the fields by which it finds, feeds and stops the workers. A worker's CPU and
// memory, which the scheduler reckons with, are among them. So are the pod's end and the API server's token, which no
// worker gets.
// Errors: InvalidArgument that names the field, `path` ("spec.dataWorkers.template") before it, and the way out.
Result<void> check_worker_template(const TrainingJob& training_job, std::string_view path);

// `derived` with the job's template merged over it. REQUIRES: the check has passed.
nlohmann::json with_worker_template(nlohmann::json derived, const TrainingJob& training_job);

}  // namespace sluice::api
