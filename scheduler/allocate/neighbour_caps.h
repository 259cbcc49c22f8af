// The beginning of step 3 of decide(), "floor": trainers are guarded against the feeders of other jobs on their nodes.
//
// Each trainer's NeighbourGuard is shown the newest window of its measurement and the CPU for data around it. While a
// guard holds, every other feeder on those nodes is capped at the CPU that it used before. floor.h keeps to the caps.
//
// Thread safety: none.
#pragma once

#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"
#include "scheduler/model/config.h"

namespace sluice::scheduler {

// Sets HostShare::cap and guarded of all allocations, and Estimate::memory's guards.
void guard_neighbours(std::vector<JobAllocation>& allocations, const NodeTable& nodes, double now_seconds,
                      const Config& config);

}  // namespace sluice::scheduler
