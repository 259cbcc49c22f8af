// Kubernetes' HorizontalPodAutoscaler on the CPU utilisation of each job's data workers, target 80 %.
//
// Beside its workers a trainer keeps its GPU-proportional share. At least one worker per job (an HPA cannot scale from
// zero), no maximum but the job's own. Algorithm and constants: hpa_replicas.h, hpa_behavior.h; one sync in 15 s.
// Utilisation comes from the job's metrics: the executors' busy time over the workers that were ready. The metrics
// server shows the same of pods that do nothing else.
//
// Source: Kubernetes documentation, "Horizontal Pod Autoscaling"; the baseline of Cachew (ATC'22), section 6.
#pragma once

#include <memory>

#include "scheduler/model/policy.h"
#include "scheduler/simulator/policies/requests.h"

namespace sluice::scheduler {

// "hpa", or "hpa-everywhere" where workers may use what GPU hosts have left.
std::unique_ptr<Policy> make_hpa_policy(WorkerNodes worker_nodes = WorkerNodes::kWithoutGpus);

}  // namespace sluice::scheduler
