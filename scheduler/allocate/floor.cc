#include "scheduler/allocate/floor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace sluice::scheduler {
namespace {

// Nodes without GPUs are shared by ranks.
double claim_on(const HostShare& host, const NodeState& state) { return state.node->gpus > 0 ? host.gpus : host.ranks; }

std::vector<double> claims_per_node(const std::vector<JobAllocation>& allocations, const NodeTable& nodes) {
  std::vector<double> claims(nodes.size());
  for (const JobAllocation& allocation : allocations) {
    if (!allocation.adjustable) continue;
    for (const HostShare& host : allocation.hosts)
      if (host.node != kNowhere) claims[host.node] += claim_on(host, nodes[host.node]);
  }
  return claims;
}

// It was measured, and is not any more. An estimate that is only guessed, from a job like it, holds nothing.
bool frozen(const JobAllocation& allocation) {
  const Estimate& estimate = *allocation.estimate;
  return !estimate.metrics_usable() && estimate.known && estimate.was_measured();
}

void give(JobAllocation& allocation, HostShare& host, std::int64_t millicores, NodeTable& nodes) {
  host.granted += millicores;
  allocation.local_millicores += millicores;
  if (host.node != kNowhere) nodes.give_local(host.node, millicores);
}

// Feeders get up to so much, as far as there is room.
void raise(JobAllocation& allocation, std::int64_t HostShare::*to, NodeTable& nodes) {
  for (HostShare& host : allocation.hosts) {
    if (host.node == kNowhere) continue;
    const std::int64_t room = std::max<std::int64_t>(nodes[host.node].free_for_local(), 0);
    give(allocation, host, std::min(host.*to - host.granted, room), nodes);
  }
}

void hold_as_it_is(JobAllocation& allocation, NodeTable& nodes) {
  for (HostShare& host : allocation.hosts) {
    host.floor = host.most = host.held;
    give(allocation, host, host.floor, nodes);
  }
}

// A core per GPU: a floor whatever the need.
std::int64_t least_floor(const HostShare& host) { return 1000 * std::max(host.gpus, host.gpus > 0 ? 1 : host.ranks); }

// More than this, and the feeders slow a trainer down. For their own trainer they go back to the CPU that they used
// before; for another one they keep the least floor, as far as their share allows. On a crowded host, and on trial,
// they keep to their share.
void settle_cap(const JobAllocation& allocation, HostShare& host) {
  if (host.guarded != nullptr) host.cap = std::max(host.cap, std::min(host.share, least_floor(host)));
  if (host.keeps_to_share) host.cap = std::min(host.cap, host.share);
  if (const auto own = allocation.estimate->local_cap_cores)
    host.cap = std::min<std::int64_t>(host.cap, std::llround(1000 * *own * host.part));
}

// Feeders that left most of their CPU idle, over a whole window, may not be able to use more. Those that have just
// grown have not shown it yet, and no data workers are started in the meantime.
double usable_local_cores(const Estimate& estimate, const Config& config) {
  const double most = config.local_extrapolation * estimate.busy_local_cores;
  const bool is_idle = estimate.feeders_seen && most < estimate.local_held_cores;
  return is_idle ? most : std::numeric_limits<double>::infinity();
}

void set_floor(const JobAllocation& allocation, HostShare& host, const Config& config) {
  const std::int64_t least = least_floor(host);
  if (!allocation.estimate->known || allocation.job->placement == Placement::kRemote) {
    host.floor = allocation.job->placement == Placement::kRemote ? std::min(host.share, least) : host.share;
    host.most = host.floor;
    return;
  }
  if (frozen(allocation)) {
    host.floor = std::min(host.share, std::max(least, host.held));
    host.most = std::max(host.floor, host.held);
    return;
  }
  const double knee = 1000 * allocation.estimate->knee_cores * host.part;
  const auto need = static_cast<std::int64_t>(std::min(std::ceil(config.floor_of_need * knee), 1e12));
  host.floor = std::min(host.share, std::max(least, need));
  // A feeder serves its own host's ranks.
  const double usable = std::min(allocation.target.supply_ratio * knee,
                                 1000 * usable_local_cores(*allocation.estimate, config) * host.part);
  host.most = std::max(host.floor, static_cast<std::int64_t>(std::min(usable, 1e12)));
  host.floor = std::min(host.floor, host.cap);
  host.most = std::min(host.most, host.cap);
}

}  // namespace

void hold_workers(const std::vector<JobAllocation>& allocations, NodeTable& nodes) {
  for (const JobAllocation& allocation : allocations) {
    if (!allocation.target.is_held()) continue;
    for (std::size_t i = 0; i < allocation.worker_nodes.size(); ++i)
      if (allocation.worker_nodes[i] != kNowhere && !allocation.job->workers[i].draining)
        nodes[allocation.worker_nodes[i]].staying_millicores += allocation.worker_millicores;
  }
}

void grant_floors(std::vector<JobAllocation>& allocations, NodeTable& nodes, const Config& config) {
  const std::vector<double> claims = claims_per_node(allocations, nodes);
  for (JobAllocation& allocation : allocations) {
    if (!allocation.job->local_adjustable) continue;
    if (!allocation.adjustable) hold_as_it_is(allocation, nodes);
  }
  // Feeders that stay as they are leave less to share.
  std::vector<std::int64_t> room(nodes.size());
  for (int node = 0; node < nodes.size(); ++node)
    room[node] = std::max<std::int64_t>(0, nodes[node].room_millicores - nodes[node].local_millicores);
  for (JobAllocation& allocation : allocations) {
    if (!allocation.adjustable) continue;
    for (HostShare& host : allocation.hosts) {
      if (host.node == kNowhere) {  // nothing is known that could be shared
        host.share = host.floor = host.most = host.held;
        give(allocation, host, host.floor, nodes);
        continue;
      }
      const NodeState& state = nodes[host.node];
      const double all = std::max<double>(state.node->gpus, claims[host.node]);
      const double part = all > 0 ? claim_on(host, state) / all : 0;
      host.share = static_cast<std::int64_t>(part * static_cast<double>(room[host.node]));
      settle_cap(allocation, host);
      set_floor(allocation, host, config);
      give(allocation, host, std::min(host.floor, host.held), nodes);
    }
  }
  for (JobAllocation& allocation : allocations)
    if (allocation.adjustable) raise(allocation, &HostShare::floor, nodes);
}

void hold_frozen(std::vector<JobAllocation>& allocations, NodeTable& nodes) {
  for (JobAllocation& allocation : allocations)
    if (allocation.adjustable && frozen(allocation)) raise(allocation, &HostShare::most, nodes);
}

std::int64_t limit_millicores(const JobAllocation& allocation, const HostShare& host, const NodeTable& nodes) {
  if (host.node == kNowhere || allocation.job->placement == Placement::kRemote) return host.granted;
  // Idle CPU would take reads from the jobs that share its storage.
  if (allocation.blocked == Reason::kStorage) return host.granted;
  const std::int64_t room = nodes[host.node].room_millicores;
  return std::max(host.granted, std::min(room, host.cap));
}

}  // namespace sluice::scheduler
