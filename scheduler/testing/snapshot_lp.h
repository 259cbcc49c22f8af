// The best that any allocation could do for one snapshot: the floors kept, cores divisible, as a linear programme.
//
// Chords of a fine grid replace the progress curve from below, so the result is within 1e-3 of the concave optimum.
// Solved with COIN-OR Clp.
#pragma once

#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"
#include "scheduler/model/config.h"

namespace sluice::scheduler::testing {

// The sum of worth * f over the allocations. REQUIRES: floors granted (floor.h), no workers; no quotas, budgets
// or networks.
double best_value(const std::vector<JobAllocation>& allocations, const NodeTable& nodes, const Config& config);

}  // namespace sluice::scheduler::testing
