// The beginning of step 3 of decide(), "floor": trainers are guarded against the feeders of other jobs on their nodes.
//
// Each trainer's NeighbourGuard is shown the newest window of its measurement and the CPU for data around it. While a
// guard holds, every other feeder on those nodes is capped at the CPU that it used before. floor.h keeps to the caps.
//
// All windows together show what feeders beyond their share cost (crowding.h). By its verdict and its trials, the
// feeders of a host with several trainers keep to their share.
//
// Thread safety: none.
#pragma once

#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"
#include "scheduler/model/config.h"

namespace sluice::scheduler {

// Sets HostShare::cap, guarded and keeps_to_share of all allocations, and Estimate::memory's guards and crowding.
void guard_neighbours(std::vector<JobAllocation>& allocations, const NodeTable& nodes, double now_seconds,
                      const Config& config);

}  // namespace sluice::scheduler
