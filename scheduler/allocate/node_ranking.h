// Nodes in the order in which new workers take them: CPU-only nodes before trainers' hosts, cheap before dear, then
// those that have the job's data, then the emptiest, then by name.
//
// The order is kept up lazily: a node whose room is out of date goes on with the room that is left. So a worker costs
// O(log nodes), however many workers took and gave back room meanwhile. Each group of nodes has an order of its own:
// the search for a worker's node never goes through groups that do not take it.
//
// Thread safety: none. Lifetime: refers to the nodes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/allocate/node_table.h"
#include "scheduler/allocate/tournament.h"

namespace sluice::scheduler {

// Whether a node takes a worker.
enum class Suits { kYes, kNo, kNoneOfItsGroup };

class NodeRanking {
 public:
  // Of those with room for new workers now.
  explicit NodeRanking(const NodeTable& nodes);

  using SuitsFunction = std::function<Suits(int node)>;

  // The best node of the groups with so much CPU that `suits`; kNowhere when none does. `near`: those that have the
  // job's data, in the order of their names. REQUIRES: the caller takes just that much.
  int take(std::int64_t millicores, GroupSet groups, const SuitsFunction& suits, std::span<const int> near = {});

  // The node may have more room than before.
  void refresh(int node) { set(node, standing_of(node, nodes_[node].free_for_workers())); }

 private:
  struct Group {
    std::vector<int> nodes;  // in their order
    Tournament tournament;

    int best() const { return nodes[tournament.winner()]; }
    const Standing& best_standing() const { return tournament.standing(tournament.winner()); }
  };

  // Of a node with so much room; without any it takes no part.
  Standing standing_of(int node, std::int64_t room) const;
  void set(int node, const Standing& standing) { groups_[nodes_.bit(node)].tournament.set(places_[node], standing); }
  Group* best_of(GroupSet groups);  // the group of the best node; nullptr: none has room
  // The best of `near` among those of the kind; kNowhere: none of them suits.
  int take_near(int kind, std::int64_t millicores, GroupSet groups, const SuitsFunction& suits,
                std::span<const int> near) const;

  const NodeTable& nodes_;
  std::vector<int> kinds_;   // by node: its place in the order of GPUs and price; nodes that share both share the place
  std::vector<int> places_;  // by node: its place in its group
  std::array<Group, kGroups> groups_;
  std::vector<std::pair<int, Standing>> passed_;  // nodes of one call; kept for its memory
};

}  // namespace sluice::scheduler
