// Step 5 of decide(): what the plan means for one job, in figures and in one sentence.
//
// Thread safety: pure function.
#pragma once

#include "scheduler/config.h"
#include "scheduler/contender.h"
#include "scheduler/node_table.h"
#include "scheduler/plan.h"
#include "scheduler/progress.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

// `plan` has id, workers, recommended, local, admission and reason; this fills in the figures, the bottleneck and, with
// Config::in_words, the sentence.
void explain(const Contender& contender, double now_seconds, const NodeTable& nodes, const ProgressTable& curve,
             const Config& config, JobPlan& plan);

}  // namespace sluice::scheduler
