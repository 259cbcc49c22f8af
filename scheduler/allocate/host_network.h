// The traffic on the networks of trainers' hosts, while growth decides how many workers each job gets.
//
// A worker sends every rank its part of the samples. Samples for ranks on its own node cross no network. So a worker
// that fits on a host of its job is not counted into that host's network. The nodes of workers are not known yet: of
// the job's hosts with room, the one with the least network left is taken. Placement then finds the real nodes, and
// refuses traffic that their networks do not carry.
//
// Thread safety: none. Lifetime: refers to the nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"

namespace sluice::scheduler {

class HostNetwork {
 public:
  explicit HostNetwork(const NodeTable& nodes);

  // Counts the assured workers of a held target, on the nodes that they have.
  void hold(const JobAllocation& allocation);

  // Counts up to so many more workers of the job; returns how many the networks carry.
  int take(JobAllocation& allocation, int workers);

  // REQUIRES: so many were taken
  void give_back(JobAllocation& allocation, int workers);

 private:
  void add(const JobAllocation& allocation, int standing_on, double workers);
  bool carries(const JobAllocation& allocation, int standing_on) const;
  HostShare* host_with_room(JobAllocation& allocation);

  const NodeTable& nodes_;
  std::vector<double> left_bytes_per_second_;  // into each node
  std::vector<std::int64_t> own_millicores_;   // per node: workers counted as standing on a host of their job
};

}  // namespace sluice::scheduler
