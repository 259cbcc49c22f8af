// The data workers' pod template, derived from the trainer's.
//
// Thread safety: pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/api/training_job.h"
#include "operator/config.h"

namespace sluice::act {

// One container in the trainer's image, with its environment, user, pull secrets, tolerations and node selector.
// Volumes are those that the training container mounts, read-only. GPUs, what keeps the trainer on nodes with GPUs,
// init containers and tokens for the API server are left out. Only nodes of the image's architecture are used. Files
// that the user's code can read in the trainer it can read here. Over all that, spec.dataWorkers.template.
// They may be evicted at any time, and say so to cluster autoscalers. REQUIRES: the job has passed view_training_job().
nlohmann::json worker_pod_template(const api::TrainingJob& training_job, const control::Config& config);

}  // namespace sluice::act
