#include "scheduler/room.h"

#include <algorithm>

namespace sluice::scheduler {

Room::Room(const std::vector<Node>& nodes) {
  for (const Node& node : nodes) {
    const std::int64_t free =
        std::max<std::int64_t>(0, node.allocatable_millicores - node.requested_by_others_millicores);
    nodes_.push_back({node.name, node.schedulable, free, 0});
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const State& a, const State& b) { return a.name < b.name; });
  for (int index = 0; index < static_cast<int>(nodes_.size()); ++index) {
    const State& node = nodes_[index];
    index_of_.emplace(node.name, index);
    if (!node.schedulable) continue;
    capacity_millicores_ += node.free;
    by_spare_.emplace(-node.free, index);
    by_free_.emplace(-node.free, index);
  }
}

void Room::expect(const std::string& node, std::int64_t millicores) {
  const int index = index_of_.at(node);
  // A cordoned node offers exactly the room its workers stand on.
  if (!nodes_[index].schedulable && nodes_[index].expected + millicores <= nodes_[index].free)
    capacity_millicores_ += millicores;
  change(index, 0, millicores);
}

bool Room::keep(const std::string& node, std::int64_t millicores) {
  const int index = index_of_.at(node);
  if (nodes_[index].free < millicores) return false;
  change(index, -millicores, -millicores);
  return true;
}

bool Room::would_fit_without(const std::string& node, std::int64_t expected_millicores,
                             std::int64_t new_millicores) const {
  const State& state = nodes_[index_of_.at(node)];
  return state.schedulable && state.free - state.expected + expected_millicores >= new_millicores;
}

std::optional<std::string> Room::place(const Ranking& ranking, std::int64_t millicores) {
  if (ranking.empty()) return std::nullopt;
  const auto [negative_room, index] = *ranking.begin();
  if (-negative_room < millicores) return std::nullopt;
  change(index, -millicores, 0);
  return nodes_[index].name;
}

void Room::release(const std::string& node, std::int64_t millicores) { change(index_of_.at(node), millicores, 0); }

void Room::change(int index, std::int64_t free_delta, std::int64_t expected_delta) {
  State& node = nodes_[index];
  if (node.schedulable) {
    by_spare_.erase({node.expected - node.free, index});
    by_free_.erase({-node.free, index});
  }
  node.free += free_delta;
  node.expected += expected_delta;
  granted_millicores_ -= free_delta;
  if (node.schedulable) {
    by_spare_.emplace(node.expected - node.free, index);
    by_free_.emplace(-node.free, index);
  }
}

}  // namespace sluice::scheduler
