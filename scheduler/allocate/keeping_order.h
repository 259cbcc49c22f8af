// Which workers of a job stop first, where it has to stop some.
//
// The first to stop are workers on nodes that take no new ones of the job. The next are, in this order:
//   starting            not ready yet
//   unbound             on no node of the snapshot yet
//   on a crowded node   whose workers cannot all stay
//   on a dear node, then on a spot node
//   young
//   on a nearly empty node
// The name decides between equals.
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
