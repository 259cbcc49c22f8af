#include "scheduler/allocate/node_table.h"

#include <algorithm>
#include <limits>

namespace sluice::scheduler {
namespace {

// As it is before this decision gives anything away.
NodeState state_of(const Node& node) {
  NodeState state{.node = &node, .bit = bit_of(node.group), .schedulable = node.schedulable};
  state.room_millicores = std::max<std::int64_t>(0, node.allocatable_millicores - node.requested_by_others_millicores);
  state.memory_bytes = node.free_memory_bytes.value_or(std::numeric_limits<std::int64_t>::max());
  state.price_per_core_hour =
      node.price_per_hour * 1000 / static_cast<double>(std::max<std::int64_t>(node.allocatable_millicores, 1));
  state.sends_bytes_per_second = state.receives_bytes_per_second =
      node.network_bytes_per_second.value_or(std::numeric_limits<double>::infinity());
  state.network_rounding = 1e-10 * node.network_bytes_per_second.value_or(0);
  return state;
}

}  // namespace

NodeTable::NodeTable(const std::vector<Node>& nodes, std::int64_t worker_millicores)
    : index_(nodes.size()), unit_millicores_(std::max<std::int64_t>(worker_millicores, 1)) {
  states_.reserve(nodes.size());
  names_.reserve(nodes.size());
  for (const Node* node : nodes_by_name(nodes)) {
    index_.add(node->name, size());
    states_.push_back(state_of(*node));
    names_.push_back(node->name);
    const int bit = bit_of(node->group);
    pool_millicores_[bit] += pool_part(states_.back(), 0);
    if (node->schedulable && states_.back().room_millicores > 0) usable_groups_ |= only(bit);
    groups_ = std::max(groups_, node->group + 1);
  }
}

GroupSet NodeTable::groups_open_to(const Job& job) const {
  GroupSet open = ~GroupSet{0};
  const int closed = static_cast<int>(std::min<std::size_t>(job.closed_groups.size(), kGroups - 1));
  for (int group = 0; group < closed; ++group)
    if (job.closed_groups[group]) open &= ~only(group);
  bool shared_is_open = groups_ > std::ssize(job.closed_groups) || groups_ < kGroups;
  for (int group = kGroups - 1; group < groups_ && !shared_is_open; ++group) shared_is_open = !job.closed_groups[group];
  return shared_is_open ? open : open & ~only(kGroups - 1);
}

std::int64_t NodeTable::pool_part(const NodeState& state, std::int64_t extra_local_millicores) const {
  if (!state.schedulable) return 0;
  const std::int64_t usable =
      std::max<std::int64_t>(0, state.room_millicores - state.local_millicores - extra_local_millicores);
  return usable - usable % unit_millicores_;
}

void NodeTable::give_local(int node, std::int64_t millicores) {
  NodeState& state = states_[node];
  pool_millicores_[bit(node)] -= pool_part(state, 0) - pool_part(state, millicores);
  state.local_millicores += millicores;
}

std::int64_t NodeTable::local_within(int node, std::int64_t millicores, std::int64_t spare_millicores) const {
  const NodeState& state = states_[node];
  const std::int64_t given = std::min(millicores, state.room_millicores - state.local_millicores);
  if (given <= 0) return 0;
  if (spare_millicores >= given + unit_millicores_) return given;  // no more can vanish, and divisions are slow
  const std::int64_t before = pool_part(state, 0);
  if (before - pool_part(state, given) <= spare_millicores) return given;
  // As much as leaves the pool just the part of this node that it cannot do without.
  const std::int64_t kept = before - spare_millicores / unit_millicores_ * unit_millicores_;
  return std::clamp<std::int64_t>(state.room_millicores - state.local_millicores - kept, 0, given);
}

}  // namespace sluice::scheduler
