#include "scheduler/node_table.h"

#include <algorithm>
#include <limits>

namespace sluice::scheduler {
namespace {

// As it is before this decision gives anything away.
NodeState state_of(const Node& node) {
  NodeState state{.node = &node};
  state.room_millicores = std::max<std::int64_t>(0, node.allocatable_millicores - node.requested_by_others_millicores);
  if (node.schedulable)
    state.worker_room_millicores = std::max<std::int64_t>(0, state.room_millicores - node.guarded_millicores);
  state.memory_bytes = node.free_memory_bytes.value_or(std::numeric_limits<std::int64_t>::max());
  state.network_bytes_per_second = node.network_bytes_per_second.value_or(std::numeric_limits<double>::infinity());
  return state;
}

}  // namespace

double NodeState::price_per_core_hour() const {
  return node->price_per_hour * 1000 / static_cast<double>(std::max<std::int64_t>(node->allocatable_millicores, 1));
}

NodeTable::NodeTable(const std::vector<Node>& nodes, std::int64_t worker_millicores)
    : index_(nodes.size()), unit_millicores_(std::max<std::int64_t>(worker_millicores, 1)) {
  std::vector<const Node*> by_name;
  by_name.reserve(nodes.size());
  for (const Node& node : nodes) by_name.push_back(&node);
  std::sort(by_name.begin(), by_name.end(), [](const Node* a, const Node* b) { return a->name < b->name; });
  states_.reserve(nodes.size());
  for (const Node* node : by_name) {
    index_.add(node->name, size());
    states_.push_back(state_of(*node));
    pool_millicores_ += pool_part(states_.back(), 0);
  }
}

std::int64_t NodeTable::pool_part(const NodeState& state, std::int64_t extra_local_millicores) const {
  const std::int64_t left = state.room_millicores - state.local_millicores - extra_local_millicores;
  const std::int64_t usable = std::max<std::int64_t>(0, std::min(state.worker_room_millicores, left));
  return usable - usable % unit_millicores_;
}

void NodeTable::give_local(int node, std::int64_t millicores) {
  NodeState& state = states_[node];
  pool_millicores_ -= pool_part(state, 0) - pool_part(state, millicores);
  state.local_millicores += millicores;
}

void NodeTable::reserve(int node, std::int64_t millicores) {
  NodeState& state = states_[node];
  pool_millicores_ -= pool_part(state, 0);
  state.room_millicores = std::max<std::int64_t>(0, state.room_millicores - millicores);
  state.worker_room_millicores = std::max<std::int64_t>(0, state.worker_room_millicores - millicores);
  pool_millicores_ += pool_part(state, 0);
}

std::int64_t NodeTable::local_within(int node, std::int64_t millicores, std::int64_t spare_millicores) const {
  const NodeState& state = states_[node];
  const std::int64_t given = std::min(millicores, state.room_millicores - state.local_millicores);
  if (given <= 0) return 0;
  const std::int64_t before = pool_part(state, 0);
  if (before - pool_part(state, given) <= spare_millicores) return given;
  // As much as leaves the pool just the part of this node that it cannot do without.
  const std::int64_t kept = before - spare_millicores / unit_millicores_ * unit_millicores_;
  return std::clamp<std::int64_t>(state.room_millicores - state.local_millicores - kept, 0, given);
}

}  // namespace sluice::scheduler
