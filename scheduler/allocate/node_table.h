// The nodes of a snapshot, indexed once, with the CPU, memory and network that this decision has given away on each.
//
// Two things take CPU: feeders ("local") and data workers. On every node
//   local + workers <= room             room: what all other pods leave
//   new workers only on schedulable nodes
// Data workers are interchangeable between the nodes of a group. So a sum for each group bounds their number, and is
// kept here: the CPU that workers can still use on its nodes, in whole workers.
//
// Indices follow the order of names, so that they do not depend on the order of the snapshot.
// Thread safety: none; a copy is independent. Lifetime: refers to the snapshot's nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/model/name_index.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// Groups of nodes (Node::group), a bit for each. All groups from the 64th on share the last bit: there a sum may
// promise a job more than its nodes hold. Placement looks at every node, and takes that back.
using GroupSet = std::uint64_t;
constexpr int kGroups = 64;

// The bit of a group.
inline int bit_of(int group) { return std::min(group, kGroups - 1); }
inline GroupSet only(int bit) { return GroupSet{1} << bit; }

struct NodeState {
  const Node* node = nullptr;
  int bit = 0;  // of its group
  bool schedulable = true;
  std::int64_t room_millicores = 0;
  std::int64_t local_millicores = 0;     // given to feeders
  std::int64_t worker_millicores = 0;    // given to data workers
  std::int64_t standing_millicores = 0;  // of live data workers, whether or not they are kept
  std::int64_t staying_millicores = 0;   // of the workers of held targets, given or to be given
  bool crowded = false;                  // its live workers cannot all stay
  std::int64_t memory_bytes = 0;         // left for data workers
  double price_per_core_hour = 0;
  // Left of the node's network, each way. A worker and a rank on one node reach each other without it.
  double sends_bytes_per_second = 0;     // for what data workers here send
  double receives_bytes_per_second = 0;  // for what trainers here receive from data workers
  double network_rounding = 0;           // the tolerance of both: sums that fill a network to the end are beside zero

  std::int64_t free_for_local() const {
    return room_millicores - local_millicores - std::max(worker_millicores, staying_millicores);
  }
  // For workers that are there already; new ones need a schedulable node, too.
  std::int64_t free_for_workers() const { return room_millicores - local_millicores - worker_millicores; }
  // Whether any worker is here, or could be.
  bool serves_workers() const { return (schedulable && free_for_workers() > 0) || standing_millicores > 0; }
};

class NodeTable {
 public:
  // `worker_millicores`: the size of the smallest worker; smaller rests of a node are of no use to workers.
  NodeTable(const std::vector<Node>& nodes, std::int64_t worker_millicores);

  int index_of(std::string_view node) const { return index_.position_of(node); }  // kNowhere: not in the snapshot
  int size() const { return static_cast<int>(states_.size()); }
  NodeState& operator[](int index) { return states_[index]; }
  const NodeState& operator[](int index) const { return states_[index]; }
  std::span<NodeState> states() { return states_; }
  std::span<const NodeState> states() const { return states_; }
  std::string_view name(int index) const { return names_[index]; }

  // Gives CPU to feeders on a node.
  void give_local(int node, std::int64_t millicores);

  int bit(int node) const { return states_[node].bit; }
  // Those with a schedulable node that has room for anything.
  GroupSet usable_groups() const { return usable_groups_; }
  // Those that take new workers of the job.
  GroupSet groups_open_to(const Job& job) const;

  // The CPU for workers on all schedulable nodes of the groups with this bit, as if none were there yet, in multiples
  // of the smallest worker.
  std::int64_t pool_millicores(int bit) const { return pool_millicores_[bit]; }

  // Of the smallest worker: as much more than feeders get can vanish from the pool.
  std::int64_t unit_millicores() const { return unit_millicores_; }

  // How much of `millicores` feeders can get on the node if at most `spare_millicores` of the pool may vanish.
  std::int64_t local_within(int node, std::int64_t millicores, std::int64_t spare_millicores) const;

 private:
  std::int64_t pool_part(const NodeState& state, std::int64_t extra_local_millicores) const;

  std::vector<NodeState> states_;
  std::vector<std::string_view> names_;  // beside each other: plans name thousands of nodes
  NameIndex index_;
  std::int64_t unit_millicores_;
  std::array<std::int64_t, kGroups> pool_millicores_{};
  GroupSet usable_groups_ = 0;
  int groups_ = 1;
};

}  // namespace sluice::scheduler
