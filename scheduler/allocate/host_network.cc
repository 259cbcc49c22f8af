#include "scheduler/allocate/host_network.h"

#include <algorithm>

namespace sluice::scheduler {

HostNetwork::HostNetwork(const NodeTable& nodes) : nodes_(nodes), own_millicores_(nodes.size()) {
  left_bytes_per_second_.reserve(nodes.size());
  for (int node = 0; node < nodes.size(); ++node)
    left_bytes_per_second_.push_back(nodes[node].receives_bytes_per_second);
}

void HostNetwork::hold(const JobAllocation& allocation) {
  if (allocation.worker_traffic == 0) return;
  int left = allocation.assured_workers();
  for (std::size_t i = 0; i < allocation.worker_nodes.size() && left > 0; ++i) {
    if (allocation.job->workers[i].draining) continue;
    add(allocation, allocation.worker_nodes[i], 1);
    --left;
  }
  add(allocation, kNowhere, left);  // those that are lost
}

int HostNetwork::take(JobAllocation& allocation, int workers) {
  if (allocation.worker_traffic == 0) return workers;
  HostShare* own = nullptr;
  for (int taken = 0; taken < workers; ++taken) {
    if (taken == 0 || own != nullptr) own = host_with_room(allocation);
    if (!carries(allocation, own == nullptr ? kNowhere : own->node)) return taken;
    add(allocation, own == nullptr ? kNowhere : own->node, 1);
    if (own != nullptr) {
      ++own->own_workers;
      own_millicores_[own->node] += allocation.worker_millicores;
    } else {
      ++allocation.elsewhere_workers;
    }
  }
  return workers;
}

void HostNetwork::give_back(JobAllocation& allocation, int workers) {
  if (allocation.worker_traffic == 0) return;
  const int elsewhere = std::min(workers, allocation.elsewhere_workers);
  allocation.elsewhere_workers -= elsewhere;
  add(allocation, kNowhere, -elsewhere);
  workers -= elsewhere;
  for (HostShare& host : allocation.hosts) {
    const int own = std::min(workers, host.own_workers);
    if (own == 0) continue;
    host.own_workers -= own;
    own_millicores_[host.node] -= own * allocation.worker_millicores;
    add(allocation, host.node, -own);
    workers -= own;
  }
}

void HostNetwork::add(const JobAllocation& allocation, int standing_on, double workers) {
  for (const HostShare& host : allocation.hosts)
    if (host.node != kNowhere && host.node != standing_on)
      left_bytes_per_second_[host.node] -= workers * allocation.worker_traffic * host.part;
}

bool HostNetwork::carries(const JobAllocation& allocation, int standing_on) const {
  return std::all_of(allocation.hosts.begin(), allocation.hosts.end(), [&](const HostShare& host) {
    if (host.node == kNowhere || host.node == standing_on || host.part <= 0) return true;
    return allocation.worker_traffic * host.part <=
           left_bytes_per_second_[host.node] + nodes_[host.node].network_rounding;
  });
}

HostShare* HostNetwork::host_with_room(JobAllocation& allocation) {
  HostShare* best = nullptr;
  for (HostShare& host : allocation.hosts) {
    if (host.node == kNowhere || host.part <= 0) continue;
    const NodeState& state = nodes_[host.node];
    const std::int64_t room = takes_new(state, allocation) ? state.free_for_workers() : state.standing_millicores;
    if (room - own_millicores_[host.node] < allocation.worker_millicores) continue;
    if (best == nullptr || left_bytes_per_second_[host.node] < left_bytes_per_second_[best->node]) best = &host;
  }
  return best;
}

}  // namespace sluice::scheduler
