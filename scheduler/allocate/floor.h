// Step 3 of decide(), "floor": no job is worse off than with its part of its own hosts.
//
//   share   of a host: its room times the job's GPUs there / GPUs of the host
//   floor   min(share, max(1 core per GPU, 1.05 need))      need = the host's part of the knee; unknown: all of it
//
// A floor comes before every other claim on the host: data workers of other jobs make way, except held ones. Beside
// held workers a feeder grows to its floor only as far as there is room, and no feeder shrinks. The floors of a host
// add up to no more than its room, as the shares do.
//
// Thread safety: none.
#pragma once

#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"
#include "scheduler/model/config.h"

namespace sluice::scheduler {

// Notes on each node the workers of held targets (modes Off and Recommend, no metrics): feeders do not get their room.
void hold_workers(const std::vector<JobAllocation>& allocations, NodeTable& nodes);

// Sets share, floor and most of every HostShare, and grants the floors. Feeders of jobs in modes Off and Recommend keep
// their requests.
void grant_floors(std::vector<JobAllocation>& allocations, NodeTable& nodes, const Config& config);

// Jobs without usable metrics keep all the CPU of their feeders, as far as there is room beside the floors.
void hold_frozen(std::vector<JobAllocation>& allocations, NodeTable& nodes);

// The limit of the feeders' CPU on a host: their grant, and idle CPU of the node beside it.
std::int64_t limit_millicores(const JobAllocation& allocation, const HostShare& host, const NodeTable& nodes);

}  // namespace sluice::scheduler
