// Who may reach a job's data workers.
//
// Thread safety: pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/api/training_job.h"

namespace sluice::act {

// Spec of the NetworkPolicy of a job's data workers: the data port is open to the job's trainer pods, the ports of
// metrics and probes to all. What workers themselves reach is not bounded: they read the data that the trainer reads.
// `trainer_job`: the trainer's Job, which keeps the pod template that it was made with; null: not made yet. A trainer
// on its node's own network has no address of a pod, so the data port is open to all then; it asks for a certificate.
nlohmann::json worker_network_policy_spec(const api::TrainingJob& training_job, const nlohmann::json& trainer_job);

}  // namespace sluice::act
