// Step "place" of decide(): which workers stay, which go, and where new ones have room.
//
//   keep   in the order of who bid most; a job keeps what is cheapest to keep. First to go are those on cordoned nodes,
//          then starting ones, those bound nowhere, those on nodes that cannot hold all they have, on dear and on spot
//          nodes, the younger, those on nodes that are nearly empty
//   new    in the order of node_ranking.h, as the cluster's own scheduler would: predicting a tighter packing than it
//          will produce would promise workers that then stay pending
//   clear  a worker too large for what is left of any node has others of lower priority make way on one
//   fill   what was given back meanwhile goes to the next bids: room that turned out to be in pieces too small for the
//          workers it was meant for, and what those who made way leave of quotas and the budget
//
// Thread safety: none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/contender.h"
#include "scheduler/growth.h"
#include "scheduler/node_table.h"

namespace sluice::scheduler {

// Gives every granted worker a node, and takes back those for which there is none. `budget_per_hour`: what the workers
// of all these contenders may cost together; none: anything.
void place(std::vector<Contender>& contenders, NodeTable& nodes, Growth& growth, std::optional<double> budget_per_hour,
           const Config& config);

// The live workers that are not kept, first to go first. REQUIRES: placed
std::vector<std::string> victims_of(const Contender& contender, const NodeTable& nodes);

// The live workers of a job as indices of Job::workers, the one to keep longest first.
std::vector<int> in_order_of_keeping(const Contender& contender, const NodeTable& nodes);

}  // namespace sluice::scheduler
