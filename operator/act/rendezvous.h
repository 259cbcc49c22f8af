// How trainer pods of one job find each other: docs/designs/multi-node.md.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/api/training_job.h"

namespace sluice::act {

// spec of the headless Service that gives every trainer pod a name, before it is ready, too.
nlohmann::json trainers_service_spec(const api::TrainingJob& training_job);

// Adds to the trainer's pod spec its place in that Service, and to `container` (one of it) the variables that
// torch.distributed and torchrun read. A variable that the user has set stays.
// REQUIRES: the job has more than one trainer pod.
void add_rendezvous(nlohmann::json& pod_spec, nlohmann::json& container, const api::TrainingJob& training_job);

}  // namespace sluice::act
