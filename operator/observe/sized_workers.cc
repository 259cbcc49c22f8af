#include "operator/observe/sized_workers.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace sluice::observe {

SizedWorkers view_sized_workers(const api::AutoResources& bounds, std::optional<api::WorkerSize> chosen,
                                std::span<const PodView* const> own, std::int64_t wanted, double now_seconds) {
  SizedWorkers workers;
  workers.bounds = bounds;
  workers.chosen = chosen;
  workers.size = chosen.value_or(bounds.first());
  workers.count = static_cast<int>(std::max<std::int64_t>(wanted, std::ssize(own)));
  for (const PodView* pod : own) {
    if (pod->worker_ran_out_of_memory)
      workers.exhausted_bytes = std::max(workers.exhausted_bytes, pod->worker_memory_bytes);
    if (pod->worker.ready)
      workers.ready_seconds = std::max(workers.ready_seconds, now_seconds - pod->worker.ready_since_seconds);
  }
  return workers;
}

api::WorkerSize first_size(const api::AutoResources& bounds, const std::optional<api::WorkerSize>& chosen,
                           const std::optional<api::WorkerSize>& learnt, std::int64_t room_millicores) {
  api::WorkerSize size = bounds.first();
  if (learnt) size.memory_bytes = bounds.within(learnt->memory_bytes);
  if (chosen) size.memory_bytes = bounds.within(chosen->memory_bytes);
  for (const std::int64_t part : {1, 2, 4}) {
    const std::int64_t millicores = bounds.millicores / part;
    if (millicores > room_millicores || millicores < bounds.least().millicores) continue;
    size.millicores = millicores;
    break;
  }
  return size;
}

std::int64_t widest_room_millicores(const scheduler::ClusterSnapshot& snapshot, const scheduler::Job& job) {
  std::map<std::string_view, std::int64_t> used;
  for (const scheduler::Job& other : snapshot.jobs) {
    for (const scheduler::Worker& worker : other.workers) used[worker.node] += other.worker_millicores;
    if (!other.local_adjustable) continue;  // counted among the others of the node
    for (const scheduler::TrainerHost& host : other.hosts) used[host.node] += host.request_millicores;
  }
  std::int64_t widest = 0;
  for (const scheduler::Node& node : snapshot.nodes)
    if (scheduler::takes_new_workers(node, job))
      widest = std::max(widest, node.allocatable_millicores - node.requested_by_others_millicores - used[node.name]);
  return widest;
}

}  // namespace sluice::observe
