#include "scheduler/decide/advice.h"

#include <algorithm>
#include <utility>

#include "scheduler/allocate/growth.h"
#include "scheduler/allocate/placement.h"

namespace sluice::scheduler {
namespace {

bool is_advised(const JobAllocation& allocation) { return allocation.advised.has_value(); }

// The job as if it held nothing and bid for the target of mode Auto. The room of its workers is free again.
JobAllocation starting_anew(const JobAllocation& allocation, NodeTable& nodes) {
  for (const int node : allocation.occupied) occupy(nodes.states(), node, allocation, -1);
  JobAllocation candidate = allocation;
  candidate.target = *allocation.advised;
  candidate.limit = candidate.target.workers;
  candidate.workers = candidate.elsewhere_workers = 0;
  for (HostShare& host : candidate.hosts) host.own_workers = 0;
  candidate.blocked.reset();
  candidate.kept.clear();
  candidate.new_nodes.clear();
  candidate.occupied.clear();
  return candidate;
}

}  // namespace

std::map<int, JobAllocation> advise(const std::vector<JobAllocation>& allocations, const NodeTable& placed,
                                    const ClusterSnapshot& snapshot, const Config& config) {
  std::map<int, JobAllocation> advice;
  if (std::none_of(allocations.begin(), allocations.end(), is_advised)) return advice;
  NodeTable nodes = placed;
  std::vector<int> indices;
  std::vector<JobAllocation> candidates;
  Budgets budgets(snapshot);
  for (int i = 0; i < std::ssize(allocations); ++i) {
    const JobAllocation& allocation = allocations[i];
    if (is_advised(allocation)) {
      indices.push_back(i);
      candidates.push_back(starting_anew(allocation, nodes));
    } else {
      for (const int node : allocation.occupied) budgets.spend(allocation, allocation.price_per_hour_on(nodes[node]));
    }
  }
  Growth growth(candidates, nodes, snapshot, config);
  for (const JobAllocation& allocation : allocations)
    if (!is_advised(allocation)) growth.hold(allocation);
  growth.hold_assured();
  growth.run();
  place(candidates, nodes, growth, std::move(budgets));
  for (std::size_t i = 0; i < indices.size(); ++i) advice.emplace(indices[i], std::move(candidates[i]));
  return advice;
}

}  // namespace sluice::scheduler
