// KEDA on the depth of each job's prefetch queue: one data worker for so many batches that were asked for and are not
// ready.
//
// KEDA creates an HPA on an external metric of type AverageValue, so desired = ceil(backlog / batches per worker).
// Tolerance, growth limit and the stabilisation window of 300 s are the HPA's (hpa_replicas.h, hpa_behavior.h). KEDA
// itself only moves between zero and one: up when the backlog is not zero, down after a cooldown of 300 s without one.
//
//   backlog = queue capacity - queue depth; away from the knee it is everything or nothing
//
// The target has to be chosen by the user, one for all jobs. Here a worker for half a batch: of 1, 1/2, 1/3 and 1/6 the
// best over the public scenarios. A higher one starves heavy jobs for good; a lower one takes CPU that other jobs need
// for five minutes.
//
// Source: KEDA documentation, "Scaling Deployments" (pollingInterval, cooldownPeriod) and the Prometheus scaler.
#pragma once

#include <memory>

#include "scheduler/model/policy.h"
#include "scheduler/simulator/policies/requests.h"

namespace sluice::scheduler {

struct KedaConstants {
  double batches_per_worker = 0.5;
  double polling_seconds = 30;
  double cooldown_seconds = 300;
  double tolerance = 0.1;
};

// "keda", or "keda-everywhere" where workers may use what GPU hosts have left.
std::unique_ptr<Policy> make_keda_policy(const KedaConstants& constants = {},
                                         WorkerNodes worker_nodes = WorkerNodes::kWithoutGpus);

}  // namespace sluice::scheduler
