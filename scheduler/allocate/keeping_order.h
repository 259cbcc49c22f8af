// The order in which a job keeps its workers, the cheapest to keep first.
//
// Workers on cordoned nodes go first. Then follow, in this order: starting ones, unbound ones, those on crowded nodes,
// on dear nodes, on spot nodes, the younger, those on nearly empty nodes. Equals go by name.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"

namespace sluice::scheduler {

// The live workers of a job as indices of Job::workers, the one to keep longest first.
std::vector<int> in_order_of_keeping(const JobAllocation& allocation, const NodeTable& nodes);

// The names of the live workers that are not kept, first to go first. REQUIRES: placed
std::vector<std::string> victims_of(const JobAllocation& allocation, const NodeTable& nodes);

}  // namespace sluice::scheduler
