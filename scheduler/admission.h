// Step "admit" of decide(): which waiting trainers start now, all ranks of one at once, and on which nodes.
//
// In the order of the configuration each one starts if its GPUs are free; one that does not fit lets later ones pass
// (backfill), until it has waited so long that nobody overtakes it any more (no starvation). A gang that fits on one
// host goes to the one with the fewest free GPUs that suffice (best fit); a larger one takes the emptiest hosts, as few
// as possible. Its CPU is reserved at once, so that data workers that stand on it make way in the same decision
// (anti-stranding). CPU of data workers is therefore never what a trainer waits for, but for those that must not be
// stopped (modes Off and Recommend, no metrics).
//
// Jobs that Kueue admits (Waiting::admitted_elsewhere) are left alone.
//
// Thread safety: pure function but for the room it takes.
#pragma once

#include <map>
#include <string>

#include "scheduler/config.h"
#include "scheduler/node_table.h"
#include "scheduler/plan.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

// The waiting jobs that are admitted. Takes their CPU from the nodes' room.
std::map<JobId, Admission> admit(const ClusterSnapshot& snapshot, NodeTable& nodes, const Config& config);

}  // namespace sluice::scheduler
