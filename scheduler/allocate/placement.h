// Step 5 of decide(), "place": which workers stay, which go, and where new ones have room.
//
//   keep   in the order of the highest bids; a job keeps the workers that come first in keeping_order.h
//   new    in the order of node_ranking.h, as the cluster's own scheduler does: a tighter packing would promise workers
//          that then stay pending. A worker that may use several groups of nodes leaves those that others need
//   clear  for a worker that is too large for every node, smaller ones of lower priority make way on one node
//   fill   CPU, quota and budget that were given back meanwhile go to the next bids
//
// Thread safety: none.
#pragma once

#include <vector>

#include "scheduler/allocate/budgets.h"
#include "scheduler/allocate/growth.h"
#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"

namespace sluice::scheduler {

// Gives every granted worker a node, and takes back those for which there is none. `budgets`: what the workers of
// all these allocations may cost.
void place(std::vector<JobAllocation>& allocations, NodeTable& nodes, Growth& growth, Budgets budgets);

}  // namespace sluice::scheduler
