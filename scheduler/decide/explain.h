// Step 6 of decide(), "explain": the meaning of the plan for one job, in figures and in one sentence.
//
// Thread safety: pure function.
#pragma once

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"
#include "scheduler/model/config.h"
#include "scheduler/model/plan.h"
#include "scheduler/model/progress.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// `plan` has id, workers, recommended, local and reason; explain() adds the figures of supply, the bottleneck and, with
// Config::in_words, the sentence.
void explain(const JobAllocation& allocation, double now_seconds, const NodeTable& nodes, const ProgressTable& curve,
             const Config& config, JobPlan& plan);

}  // namespace sluice::scheduler
