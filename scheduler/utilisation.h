// How busy the accelerators of a cluster are: on their jobs' own CPU, under a plan, and under any plan.
//
// What cannot be gained is said beside what is: where the own CPU feeds everybody, no plan can bring anything.
// Thread safety: pure function.
#pragma once

#include "scheduler/config.h"
#include "scheduler/plan.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

// Shares of the time, 0..1, as a mean over the running jobs whose demand and rates are known, each by its GPUs (a job
// without any counts as one). The others are left out.
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
