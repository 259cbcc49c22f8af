// The nodes' free CPU while an allocation is being built: which worker fits where.
//
// Placement follows the cluster's own default scheduler, which prefers the emptiest node: predicting a tighter packing
// than it will produce would promise workers that then stay pending. Among equal nodes the first by name, so the result
// is deterministic.
//
// Invariants
//   1. free >= 0 on every node at all times; only keep() and the two place functions take from it.
//   2. spare = free - room of existing workers that may still be kept; new workers go to spare room first, and displace
//      an existing worker only when there is none left.
// Thread safety: none; a copy is independent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/snapshot.h"

namespace sluice::scheduler {

class Room {
 public:
  explicit Room(const std::vector<Node>& nodes);

  // CPU that data workers may use on all nodes: what is free on schedulable ones, and what workers hold on the others.
  std::int64_t capacity_millicores() const { return capacity_millicores_; }
  std::int64_t granted_millicores() const { return granted_millicores_; }

  bool knows(const std::string& node) const { return index_of_.contains(node); }

  // An existing worker that may be kept stands on the node.  REQUIRES: knows(node)
  void expect(const std::string& node, std::int64_t millicores);

  // It will not be kept after all.  REQUIRES: expect() before
  void forget(const std::string& node, std::int64_t millicores) { change(index_of_.at(node), 0, -millicores); }

  // Grants an expected worker its place. False when somebody else has taken the room.  REQUIRES: expect() before
  bool keep(const std::string& node, std::int64_t millicores);

  // Whether forgetting an expected worker on the node would make spare room for a new one.
  bool would_fit_without(const std::string& node, std::int64_t expected_millicores, std::int64_t new_millicores) const;

  // Grants a new worker spare room and says where; none when no schedulable node has enough.
  std::optional<std::string> place_in_spare(std::int64_t millicores) { return place(by_spare_, millicores); }

  // The same, in room that expected workers stand on.
  std::optional<std::string> place_over_expected(std::int64_t millicores) { return place(by_free_, millicores); }

  // Gives back what keep() or a place function took.
  void release(const std::string& node, std::int64_t millicores);

 private:
  struct State {
    std::string name;
    bool schedulable = true;
    std::int64_t free = 0;
    std::int64_t expected = 0;
  };
  using Ranking = std::set<std::pair<std::int64_t, int>>;  // (-room, index): most room first, then by name

  std::optional<std::string> place(const Ranking& ranking, std::int64_t millicores);
  void change(int index, std::int64_t free_delta, std::int64_t expected_delta);

  std::vector<State> nodes_;  // by name
  std::map<std::string, int, std::less<>> index_of_;
  Ranking by_spare_;  // schedulable nodes only
  Ranking by_free_;
  std::int64_t capacity_millicores_ = 0;
  std::int64_t granted_millicores_ = 0;
};

}  // namespace sluice::scheduler
