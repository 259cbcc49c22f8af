// The data workers' pod template, derived from the trainer's.
//
// Thread safety: pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/config.h"

namespace sluice::act {

// One container in the trainer's image with the trainer's environment, volumes (those that the training container
// mounts, read-only), user, pull secrets, tolerations and node selector; without its GPUs, its own init containers and
// a service-account token. What the user's code can read in the trainer it can read here.
nlohmann::json worker_pod_template(const nlohmann::json& training_job, const control::Config& config);

}  // namespace sluice::act
