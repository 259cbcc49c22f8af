#include "scheduler/allocate/node_ranking.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "scheduler/allocate/heap.h"

namespace sluice::scheduler {
namespace {

std::vector<int> kinds_of(const NodeTable& nodes) {
  std::map<std::pair<bool, double>, int> order;
  std::vector<int*> kind_of(nodes.size());
  for (int node = 0; node < nodes.size(); ++node)
    kind_of[node] = &order[{nodes[node].node->gpus > 0, nodes[node].price_per_core_hour}];
  int kind = 0;
  for (auto& entry : order) entry.second = kind++;
  std::vector<int> kinds(nodes.size());
  std::transform(kind_of.begin(), kind_of.end(), kinds.begin(), [](const int* of) { return *of; });
  return kinds;
}

}  // namespace

NodeRanking::NodeRanking(const NodeTable& nodes) : nodes_(nodes), kinds_(kinds_of(nodes)) {
  for (int node = 0; node < nodes.size(); ++node)
    if (nodes[node].schedulable && nodes[node].free_for_workers() > 0)
      heaps_[nodes.bit(node)].push_back(entry_of(node));
  for (std::vector<Entry>& heap : heaps_) std::make_heap(heap.begin(), heap.end());
}

NodeRanking::Entry NodeRanking::entry_of(int node) const {
  return {kinds_[node], node, nodes_[node].free_for_workers()};
}

void NodeRanking::push(const Entry& entry) {
  std::vector<Entry>& heap = heaps_[nodes_.bit(entry.node)];
  heap.push_back(entry);
  std::push_heap(heap.begin(), heap.end());
}

void NodeRanking::set_top_room(std::int64_t room, std::vector<Entry>& heap) {
  if (room > 0) {
    heap.front().room = room;
    sink_top_to_bottom(heap);
  } else {
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
  }
}

std::vector<NodeRanking::Entry>* NodeRanking::best_of(GroupSet groups) {
  std::vector<Entry>* best = nullptr;
  for (GroupSet left = groups & nodes_.usable_groups(); left != 0; left &= left - 1) {
    std::vector<Entry>& heap = heaps_[std::countr_zero(left)];
    if (!heap.empty() && (best == nullptr || best->front() < heap.front())) best = &heap;
  }
  return best;
}

int NodeRanking::take(std::int64_t millicores, GroupSet groups, const std::function<Suits(int node)>& suits) {
  passed_.clear();
  int found = kNowhere;
  while (found == kNowhere) {
    std::vector<Entry>* heap = best_of(groups);
    if (heap == nullptr) break;
    const Entry entry = heap->front();
    std::int64_t room = nodes_[entry.node].free_for_workers();
    if (room == entry.room) {
      const Suits verdict = room >= millicores ? suits(entry.node) : Suits::kNo;
      if (verdict == Suits::kYes) {
        found = entry.node;
        room -= millicores;
      } else {
        passed_.push_back(entry);
        if (verdict == Suits::kNoneOfItsGroup) groups &= ~only(nodes_.bit(entry.node));
        room = 0;
      }
    }
    set_top_room(room, *heap);
  }
  for (const Entry& entry : passed_) push(entry);
  return found;
}

}  // namespace sluice::scheduler
