#include "scheduler/allocate/keeping_order.h"

#include <algorithm>
#include <compare>
#include <string_view>
#include <utility>

namespace sluice::scheduler {
namespace {

std::vector<int> live_workers(const JobAllocation& allocation) {
  std::vector<int> live;
  live.reserve(allocation.live);
  for (int i = 0; i < std::ssize(allocation.worker_nodes); ++i)
    if (!allocation.any_drains() || !allocation.job->workers[i].draining) live.push_back(i);
  return live;
}

// Some of the job's workers, the one to keep longest first.
std::vector<int> in_order_of_keeping(const JobAllocation& allocation, const NodeTable& nodes, std::vector<int> some) {
  struct Key {  // in the order in which it counts; names differ
    bool closed = false;
    bool starting = false;
    bool unbound = false;
    bool crowded = false;
    double price = 0;
    bool spot = false;
    double created = 0;
    std::int64_t emptiness = 0;
    std::string_view name;
    int index = 0;

    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys;
  keys.reserve(some.size());
  for (const int i : some) {
    const Worker& worker = allocation.job->workers[i];
    Key key{.starting = !worker.ready,
            .unbound = allocation.worker_nodes[i] == kNowhere,
            .created = worker.created_at_seconds,
            .name = worker.name,
            .index = i};
    if (!key.unbound) {
      const NodeState& state = nodes[allocation.worker_nodes[i]];
      key.crowded = state.crowded;
      key.closed = !takes_new(state, allocation);
      key.price = state.price_per_core_hour;
      key.spot = state.node->spot;
      key.emptiness = state.free_for_workers();
    }
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  std::transform(keys.begin(), keys.end(), some.begin(), [](const Key& key) { return key.index; });
  return some;
}

}  // namespace

std::vector<int> in_order_of_keeping(const JobAllocation& allocation, const NodeTable& nodes) {
  return in_order_of_keeping(allocation, nodes, live_workers(allocation));
}

std::vector<std::string> victims_of(const JobAllocation& allocation, const NodeTable& nodes) {
  if (allocation.live == std::ssize(allocation.kept)) return {};
  const std::vector<Worker>& workers = allocation.job->workers;
  std::vector<char> is_kept(workers.size());
  for (const Worker* worker : allocation.kept) is_kept[worker - workers.data()] = 1;
  std::vector<int> leaving = live_workers(allocation);
  std::erase_if(leaving, [&](int worker) { return is_kept[worker] != 0; });
  leaving = in_order_of_keeping(allocation, nodes, std::move(leaving));
  std::vector<std::string> names;
  names.reserve(leaving.size());
  for (auto worker = leaving.rbegin(); worker != leaving.rend(); ++worker) names.push_back(workers[*worker].name);
  return names;
}

}  // namespace sluice::scheduler
