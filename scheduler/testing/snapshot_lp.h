// The best that any allocation could do for one snapshot: the floors kept, cores divisible, as a linear programme.
//
// The progress curve is replaced by the chords of a fine grid from below and the result is therefore within 1e-3 of the
// concave optimum. Solved with COIN-OR Clp.
#pragma once

#include <vector>

#include "scheduler/config.h"
#include "scheduler/contender.h"
#include "scheduler/node_table.h"

namespace sluice::scheduler::testing {

// The sum of worth * f over the contenders. REQUIRES: floors granted (entitlement.h), no workers; no quotas, budgets or
// networks.
double best_value(const std::vector<Contender>& contenders, const NodeTable& nodes, const Config& config);

}  // namespace sluice::scheduler::testing
