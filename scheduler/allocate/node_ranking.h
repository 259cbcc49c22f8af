// Nodes in the order in which new workers take them: CPU-only nodes before trainers' hosts, cheap before dear, then the
// emptiest, then by name.
//
// The order is kept up lazily: an entry whose room is out of date returns with the room that is left. So a worker costs
// O(log nodes), however many workers took and gave back room meanwhile. Each group of nodes has an order of its own:
// the search for a worker's node never goes through groups that do not take it.
//
// Thread safety: none. Lifetime: refers to the nodes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "scheduler/allocate/node_table.h"

namespace sluice::scheduler {

// Whether a node takes a worker.
enum class Suits { kYes, kNo, kNoneOfItsGroup };

class NodeRanking {
 public:
  // Of those with room for new workers now.
  explicit NodeRanking(const NodeTable& nodes);

  // The best node of the groups with so much CPU that `suits`; kNowhere when none does. REQUIRES: the caller takes just
  // that much.
  int take(std::int64_t millicores, GroupSet groups, const std::function<Suits(int node)>& suits);

  // The node may have more room than before.
  void refresh(int node) { push(entry_of(node)); }

 private:
  // Kept small: placing compares and moves a million of them.
  struct Entry {
    int kind = 0;  // kinds_[node]
    int node = 0;
    std::int64_t room = 0;

    // The better one is on top.
    bool operator<(const Entry& other) const {
      if (kind != other.kind) return kind > other.kind;
      if (room != other.room) return room < other.room;
      return node > other.node;
    }
  };

  Entry entry_of(int node) const;
  void push(const Entry& entry);
  static void set_top_room(std::int64_t room, std::vector<Entry>& heap);  // without room it leaves the heap
  std::vector<Entry>* best_of(GroupSet groups);  // the heap with the best top; nullptr: all are empty

  const NodeTable& nodes_;
  std::vector<int> kinds_;  // by node: its place in the order of GPUs and price; nodes that share both share the place
  std::array<std::vector<Entry>, kGroups> heaps_;  // by group; the best is on top
  std::vector<Entry> passed_;                      // of one call; kept for its memory
};

}  // namespace sluice::scheduler
