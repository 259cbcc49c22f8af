// Advice for jobs in mode Recommend: the workers that they would get in mode Auto.
//
// Such a job keeps exactly its workers, because another controller or a person sets its number. Its advice is made from
// the CPU and the limits that the other jobs leave, with its own workers' room counted as free.
//
// Thread safety: pure function.
#pragma once

#include <map>
#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"
#include "scheduler/model/config.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// By index of `allocations`, only for jobs with advice. REQUIRES: all are placed on `placed`
std::map<int, JobAllocation> advise(const std::vector<JobAllocation>& allocations, const NodeTable& placed,
                                    const ClusterSnapshot& snapshot, const Config& config);

}  // namespace sluice::scheduler
