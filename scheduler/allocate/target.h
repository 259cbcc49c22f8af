// Step 2 of decide(), "target": the number of workers of a job if it were alone in the cluster, and the reason.
//
// Thread safety: pure function.
#pragma once

#include "scheduler/estimate/estimator.h"
#include "scheduler/model/config.h"
#include "scheduler/model/plan.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// How a target is weighed against those of other jobs.
enum class TargetKind {
  kCompeting,  // bids for its workers, by the gain of the next core
  kHeld,       // keeps the workers that it has: nothing is known that would justify taking them
  kLeftover,   // keeps what competing jobs leave: its workers may be of use, but no measurement shows it
};

struct Target {
  int workers = 0;  // at most so many
  Reason reason = Reason::kNotRunning;
  TargetKind kind = TargetKind::kCompeting;
  // Only where the plan sets the feeders' CPU, too: local and remote CPU together up to this supply ratio.
  double supply_ratio = 0;
  Reason limit_reason = Reason::kMax;  // where `workers` comes from, for jobs that end there short of the supply ratio

  bool is_held() const { return kind == TargetKind::kHeld; }
  bool is_leftover() const { return kind == TargetKind::kLeftover; }
};

// For mode Recommend this is the target that the job would have in mode Auto.
Target target_of(const Job& job, const Estimate& estimate, const Config& config);

}  // namespace sluice::scheduler
