// How busy the accelerators of a cluster are: on their jobs' own CPU, under a plan, and under any plan.
//
// The bound of any plan stands beside this plan: where the jobs' own CPU feeds all of them, no plan can gain.
// Thread safety: pure function.
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/plan.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// Shares of the time, 0..1: the mean over running jobs whose demand and rates are known. Each counts by its GPUs, a job
// without GPUs as one.
// Invariant: on_own_cpu <= planned <= at_most.
struct Utilisation {
  int jobs = 0;
  double on_own_cpu = 0;  // were there no data workers
  double planned = 0;     // once the plan is carried out; in mode Recommend: once it is followed
  double at_most = 0;     // by any division of the CPU that data workers may have, within each job's `max`
};

// The feeders' CPU is taken as the plan has it.  REQUIRES: `plan` is decide()'s for the snapshot.
Utilisation utilisation_of(const ClusterSnapshot& snapshot, const Plan& plan, const Config& config);

}  // namespace sluice::scheduler
