// Asks the processor for what the next bids of growth need, before their turn: ten thousand jobs fit into no cache.
//
// Thread safety: none. Lifetime: refers to the allocations and the nodes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"

namespace sluice::scheduler {

class Lookahead {
 public:
  Lookahead(const std::vector<JobAllocation>& allocations, const NodeTable& nodes)
      : allocations_(allocations), nodes_(nodes) {}

  // The allocation `next` will soon have its turn; if there is no such one, nothing. It is asked for in three steps, as
  // only an allocation knows the place of its hosts, and only these their nodes.
  void operator()(int next) {
    if (next == newest_ || next >= std::ssize(allocations_)) return;
    if (const HostShare* host = first_host(second_); host != nullptr && host->node != kNowhere)
      fetch(&nodes_[host->node], sizeof(NodeState));
    if (const HostShare* host = first_host(newest_)) fetch(host, sizeof(HostShare));
    fetch(&allocations_[next], offsetof(JobAllocation, worker_nodes));
    second_ = std::exchange(newest_, next);
  }

 private:
  // Inline in any case: g++ drops the call of a function that has no other effect.
  [[gnu::always_inline]] static void fetch(const void* object, std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    for (std::size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(static_cast<const char*>(object) + at);
  }

  const HostShare* first_host(int allocation) const {
    if (allocation == kNowhere || allocations_[allocation].hosts.empty()) return nullptr;
    return allocations_[allocation].hosts.data();
  }

  const std::vector<JobAllocation>& allocations_;
  const NodeTable& nodes_;
  int newest_ = kNowhere;
  int second_ = kNowhere;  // before it
};

}  // namespace sluice::scheduler
