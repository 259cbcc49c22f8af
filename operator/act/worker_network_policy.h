// The NetworkPolicy that says which pods reach a job's data workers.
//
// Thread safety: pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/api/network_policy.h"
#include "operator/api/training_job.h"

namespace sluice::act {

// The data port is open to the job's trainer pods, the ports of metrics and probes to all.
// Connections of the workers themselves are not bounded: they read the data that the trainer reads. A trainer on its
// node's own network has no address of a pod. Then the data port is open to all, and asks for a certificate as always.
// `trainer_job`: the trainer's Job, which keeps the pod template that it was made with; null: not made yet.
api::NetworkPolicyDraft worker_network_policy(const api::TrainingJob& training_job, const nlohmann::json& trainer_job);

}  // namespace sluice::act
