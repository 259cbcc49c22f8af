// What a data worker has from the trainer's pod and cannot have as it is there.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/api/training_job.h"

namespace sluice::act {

// A volume of the trainer as workers have it: without the API server's tokens. A claim that every worker would have to
// buy for itself becomes an empty directory. Resources of the trainer's container become those of the worker's.
nlohmann::json worker_volume(nlohmann::json volume);

// `container`: a worker's, made from the trainer's. The kubelet starts no container that refers to the resources of a
// container that is not in its pod. So references to the trainer's containers become references to the worker's own.
// Mounts whose path depends on the pod are removed (api/trainer_data.h).
void settle_in(nlohmann::json& container, const api::TrainingJob& training_job);

// The annotations of the trainer's pod by which a CSI driver finds the pods that mount its volumes.
nlohmann::json annotations_of_volumes(const nlohmann::json& trainer_metadata);

}  // namespace sluice::act
