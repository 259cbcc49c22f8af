// Step "place" of decide(): which workers stay, which go, and where new ones have room.
//
//   keep   in the order of who bid most; a job keeps what is cheapest to keep: ready before starting before unbound,
//   off
//          dear and spot nodes last, older before younger, on nodes full of data workers before nearly empty ones
//   new    CPU-only nodes before trainers' hosts, cheap before dear, then the emptiest, as the cluster's own scheduler
//          would: predicting a tighter packing than it will produce would promise workers that then stay pending
//   fill   room that turned out to be in pieces too small for the workers it was meant for goes to the next bids
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
