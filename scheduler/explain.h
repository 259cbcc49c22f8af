// Step 5 of decide(): what the plan means for one job, in figures and in one sentence.
//
// Thread safety: pure function.
#pragma once

#include "scheduler/allocation.h"
#include "scheduler/config.h"
#include "scheduler/estimator.h"
#include "scheduler/plan.h"
#include "scheduler/snapshot.h"
#include "scheduler/want.h"

namespace sluice::scheduler {

// `plan` has id, workers, recommended and reason; this fills in the figures, the bottleneck and the sentence.
void explain(const Job& job, const Belief& belief, double now_seconds, const Config& config, JobPlan& plan);

}  // namespace sluice::scheduler
