// The nodes of a snapshot, indexed once, with what this decision has given away on each of them.
//
// Two things take CPU: feeders ("local") and data workers. On every node
//   local + workers <= room             room: what all other pods leave
//           workers <= worker_room      room less the guarded part; nothing on nodes that take no new workers
// and the data workers of a cluster are interchangeable between its nodes. Decisions about how many there may be
// therefore need only sums, kept here: the sum over nodes of what workers could still use, in whole workers.
//
// Indices follow the order of names, so that they do not depend on the order of the snapshot.
// Thread safety: none; a copy is independent. Lifetime: refers to the snapshot's nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "scheduler/name_index.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

struct NodeState {
  const Node* node = nullptr;
  std::int64_t room_millicores = 0;
  std::int64_t worker_room_millicores = 0;
  std::int64_t local_millicores = 0;     // given to feeders
  std::int64_t worker_millicores = 0;    // given to data workers
  std::int64_t standing_millicores = 0;  // of live data workers, whether or not they are kept
  std::int64_t staying_millicores = 0;   // of those that nothing justifies taking, given or to be given
  bool crowded = false;                  // they cannot all stay
  std::int64_t memory_bytes = 0;         // left for data workers
  double network_bytes_per_second = 0;   // left for data workers

  std::int64_t free_for_local() const {
    return room_millicores - local_millicores - std::max(worker_millicores, staying_millicores);
  }
  // For workers that are there already; new ones need a schedulable node, too.
  std::int64_t free_for_workers() const {
    const std::int64_t guarded = node->schedulable ? worker_room_millicores : room_millicores;
    return std::min(guarded, room_millicores - local_millicores) - worker_millicores;
  }
  double price_per_core_hour() const;
};

class NodeTable {
 public:
  // `worker_millicores`: the size of the smallest worker; smaller rests of a node are of no use to workers.
  NodeTable(const std::vector<Node>& nodes, std::int64_t worker_millicores);

  int index_of(std::string_view node) const { return index_.position_of(node); }  // kNowhere: not in the snapshot
  int size() const { return static_cast<int>(states_.size()); }
  NodeState& operator[](int index) { return states_[index]; }
  const NodeState& operator[](int index) const { return states_[index]; }
  std::string_view name(int index) const { return states_[index].node->name; }

  // Gives CPU to feeders on a node.
  void give_local(int node, std::int64_t millicores);

  // Takes CPU for somebody who is neither feeder nor data worker.
  void reserve(int node, std::int64_t millicores);

  // What new workers could use on all schedulable nodes if none were there yet, in multiples of the smallest worker.
  std::int64_t pool_millicores() const { return pool_millicores_; }

  // How much of `millicores` feeders can get on the node if at most `spare_millicores` of the pool may vanish.
  std::int64_t local_within(int node, std::int64_t millicores, std::int64_t spare_millicores) const;

 private:
  std::int64_t pool_part(const NodeState& state, std::int64_t extra_local_millicores) const;

  std::vector<NodeState> states_;
  NameIndex index_;
  std::int64_t unit_millicores_;
  std::int64_t pool_millicores_ = 0;
};

}  // namespace sluice::scheduler
