// The data workers of jobs whose size is left to Sluice: spec.dataWorkers.autoResources.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "operator/api/worker_size.h"
#include "operator/observe/pod_view.h"
#include "scheduler/model/snapshot.h"

namespace sluice::observe {

struct SizedWorkers {
  std::string job_uid;  // of the TrainingJob
  api::AutoResources bounds;
  std::optional<api::WorkerSize> chosen;  // by the pool; none: the template's is in force
  api::WorkerSize size;                   // of the next worker
  bool refused = false;                   // the namespace does not allow what the pool says, and allows `size`
  int count = 0;                          // of workers that are there or asked for
  std::optional<double> peak_bytes;       // the most memory that one of them used; none: not measured
  std::int64_t exhausted_bytes = 0;       // the largest request of one that ran out of memory; 0: none did
  double ready_seconds = 0;               // how long one of them has been ready, at most
};

// `own`: the pods of the job's pool that have not finished. `wanted`: the pool's number.
SizedWorkers view_sized_workers(const api::AutoResources& bounds, std::optional<api::WorkerSize> chosen,
                                std::span<const PodView* const> own, std::int64_t wanted, double now_seconds);

// The size to begin with, while there is no worker. CPU: the bounds', or half or a quarter of it where `room` holds no
// more. Memory: what was chosen last, else what a like job ended with, else the bounds' first one.
api::WorkerSize first_size(const api::AutoResources& bounds, const std::optional<api::WorkerSize>& chosen,
                           const std::optional<api::WorkerSize>& learnt, std::int64_t room_millicores);

// The most CPU that is free on one node that takes the job's workers. Feeders and workers have what they have.
std::int64_t widest_room_millicores(const scheduler::ClusterSnapshot& snapshot, const scheduler::Job& job);

}  // namespace sluice::observe
