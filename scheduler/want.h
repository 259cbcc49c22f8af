// Step 2 of decide(): how much a job should have if nobody else existed, and what says so.
//
// Thread safety: pure function.
#pragma once

#include "scheduler/config.h"
#include "scheduler/estimator.h"
#include "scheduler/plan.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

struct Want {
  int workers = 0;  // at most so many
  Reason reason = Reason::kNotRunning;
  // Not to be weighed against other jobs: what the job holds stays, because nothing is known that would justify taking
  // it.
  bool unconditional = false;
  // Only where the plan sets the feeders' CPU, too: local and remote CPU together up to this supply ratio.
  double supply_ratio = 0;
  Reason limit_reason = Reason::kMax;  // what `workers` comes from, for jobs that end there short of the supply ratio
};

// For mode Recommend this is what mode Auto would want.
Want want_of(const Job& job, const Belief& belief, const Config& config);

}  // namespace sluice::scheduler
