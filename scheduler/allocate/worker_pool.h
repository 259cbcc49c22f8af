// The CPU that new workers may still take together, where jobs may use different groups of nodes.
//
// The pool is a sum for each group (node_table.h). The CPU of a job is booked to groups that are open to it, and moved
// to others if that makes room: a flow from sets of groups to groups. So a request fits exactly when the workers of all
// jobs can be divided over the groups. Source of the argument: Hall's condition, by augmenting paths (Ford and
// Fulkerson, 1956). With a single group it is a plain sum.
//
// Growth books what it grants. Placement books the workers that have no node yet, and settles each one that gets a
// node.
//
// Thread safety: none. Lifetime: refers to the nodes, and follows what is given to feeders there.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/allocate/node_table.h"

namespace sluice::scheduler {

class WorkerPool {
 public:
  explicit WorkerPool(const NodeTable& nodes);

  // How much of `wanted` a job that may use these groups can take.
  std::int64_t available(GroupSet groups, std::int64_t wanted);

  // Books CPU for a job that may use these groups. It may book more than is available, because held workers exist
  // whether or not there is room for them.
  void take(GroupSet groups, std::int64_t millicores);

  // Takes back what was booked for the same groups, at most all of it.
  void give_back(GroupSet groups, std::int64_t millicores);

  // Books CPU in the group `bit`, which is one of `groups`, and takes it from what is booked for them in the others.
  // False: the other bookings would then not fit, so nothing moves.
  bool move_to(GroupSet groups, int bit, std::int64_t millicores);

  // Workers that were booked for these groups have got nodes in the group `bit`, which may be none of them. From now on
  // their CPU stays there.
  void settle(GroupSet groups, int bit, std::int64_t millicores);

  // Workers that were settled there have stopped.
  void unsettle(int bit, std::int64_t millicores) { used_[bit] -= millicores; }

  // CPU of these groups that is not booked; negative where held workers take more than there is.
  std::int64_t spare(GroupSet groups) const;

 private:
  // What is booked for the jobs that may use the same groups.
  struct Booked {
    GroupSet groups = 0;
    std::array<std::int64_t, kGroups> millicores{};
  };

  std::int64_t free(int bit) const { return nodes_.pool_millicores(bit) - used_[bit]; }
  void take(Booked& booked, std::int64_t millicores);
  void give_back(Booked& booked, std::int64_t millicores);
  void book(Booked& booked, int bit, std::int64_t millicores);
  std::vector<Booked>::iterator place_of(GroupSet groups);
  Booked& booked_for(GroupSet groups);
  bool make_room(GroupSet groups);

  const NodeTable& nodes_;
  std::array<std::int64_t, kGroups> used_{};
  std::vector<Booked> booked_;  // one for each set of groups, in their order
  std::ptrdiff_t latest_ = 0;   // where the latest search ended: most go on there
};

}  // namespace sluice::scheduler
