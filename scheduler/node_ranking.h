// Nodes in the order in which new workers take them: CPU-only ones before trainers' hosts, cheap before dear, then the
// emptiest, then by name.
//
// Kept up lazily: an entry whose room is out of date is put back with the room that is left. So a worker costs
// O(log nodes), however many others took and gave back room meanwhile.
//
// Thread safety: none. Lifetime: refers to the nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "scheduler/node_table.h"

namespace sluice::scheduler {

class NodeRanking {
 public:
  // Of those with room for new workers now.
  explicit NodeRanking(const NodeTable& nodes);

  // The best node with so much CPU that `suits`; kNowhere when none does. REQUIRES: the caller takes just that much.
  int take(std::int64_t millicores, const std::function<bool(const NodeState&)>& suits);

  // The node may have more room than before.
  void refresh(int node) { queue_.push(entry_of(node)); }

 private:
  struct Entry {
    bool has_gpus = false;
    double price = 0;
    std::int64_t room = 0;
    int node = 0;

    bool operator<(const Entry& other) const;  // the better one is on top
  };

  Entry entry_of(int node) const;

  const NodeTable& nodes_;
  std::priority_queue<Entry> queue_;
  std::vector<Entry> passed_;  // of one call; kept for its memory
};

}  // namespace sluice::scheduler
