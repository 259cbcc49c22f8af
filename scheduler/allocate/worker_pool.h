// How much CPU new workers may still take together, where jobs may use different groups of nodes.
//
// The pool is a sum for each group (node_table.h). What jobs hold is booked to groups that are open to them, and moved
// to others where that makes room: a flow from sets of groups to groups. So a request fits exactly when the workers of
// all jobs can be divided over the groups. Source of the argument: Hall's condition, by augmenting paths (Ford and
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

  // Books it. What is not available is booked all the same: held workers are there, room or not.
  void take(GroupSet groups, std::int64_t millicores);

  // So much of what was taken with the same groups, or all of it.
  void give_back(GroupSet groups, std::int64_t millicores);

  // Books so much for these groups in this one of them, in place of what is booked for them elsewhere. False, and as
  // before: all else that is booked would not fit any more.
  bool move_to(GroupSet groups, int bit, std::int64_t millicores);

  // So much of what is booked for these groups has nodes in this group, which may be another one: it is not moved any
  // more.
  void settle(GroupSet groups, int bit, std::int64_t millicores);

  // What was settled there is gone.
  void unsettle(int bit, std::int64_t millicores) { used_[bit] -= millicores; }

  // What is free in these groups as things are booked; negative where more is held than there is.
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
