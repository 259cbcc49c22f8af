#include "scheduler/node_ranking.h"

#include <tuple>
#include <utility>

namespace sluice::scheduler {

bool NodeRanking::Entry::operator<(const Entry& other) const {
  return std::make_tuple(other.has_gpus, other.price, room, other.node) <
         std::make_tuple(has_gpus, price, other.room, node);
}

NodeRanking::NodeRanking(const NodeTable& nodes) : nodes_(nodes) {
  std::vector<Entry> entries;
  for (int node = 0; node < nodes.size(); ++node)
    if (nodes[node].node->schedulable && nodes[node].free_for_workers() > 0) entries.push_back(entry_of(node));
  queue_ = std::priority_queue<Entry>({}, std::move(entries));
}

NodeRanking::Entry NodeRanking::entry_of(int node) const {
  const NodeState& state = nodes_[node];
  return {state.node->gpus > 0, state.price_per_core_hour(), state.free_for_workers(), node};
}

int NodeRanking::take(std::int64_t millicores, const std::function<bool(const NodeState&)>& suits) {
  passed_.clear();
  int found = kNowhere;
  while (!queue_.empty() && found == kNowhere) {
    Entry entry = queue_.top();
    queue_.pop();
    const NodeState& state = nodes_[entry.node];
    if (state.free_for_workers() != entry.room) {
      if (state.free_for_workers() > 0) queue_.push(entry_of(entry.node));
    } else if (entry.room >= millicores && suits(state)) {
      found = entry.node;
      entry.room -= millicores;
      if (entry.room > 0) queue_.push(entry);
    } else {
      passed_.push_back(entry);
    }
  }
  for (const Entry& entry : passed_) queue_.push(entry);
  return found;
}

}  // namespace sluice::scheduler
