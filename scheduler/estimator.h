// Step 1 of decide(): from one measurement and what was remembered to what the scheduler believes about a job.
//
// Operational laws, every figure from the clients' and executors' own accounting:
//   D     = samples / compute seconds                exact even while starved: waiting is left out of the denominator
//   mu_L  = local samples / local busy seconds       per source, never lumped: a mixture's rate moves with the mix
//   mu_R  = remote samples / remote busy seconds     a throttled executor is slower, not less efficient: same mu
//   K     = D / mu_L                                 the knee, in local-equivalent cores
// One measurement gives the target; later ones correct it:
//   smoothing   two averages of knee and rates (tracked.h): noise does not reach the workers, a lasting change does
//   feedback    once the workers in force have been at work for a whole window: starved although supply looks
//               sufficient, and slower than the curve says, raises the knee by the shortfall, at least 10 %; sated with
//               supply to spare lowers it by 3 %, but not to a value that starved the job before, and, once every rate
//               was measured, not below what the measured rates say
//   judgement   growth that promised 30 % or more, and a whole window later brought less than a quarter of it, both
//               against the speed before and against the curve, was useless: something else is short, whatever the
//               executors look like. The job goes back to what it had
// Without a usable measurement nothing is learnt, and nothing forgotten.
// A rate that was never measured is derived from the other: mu_R = 0.77 mu_L.
//
// Thread safety: pure functions on values.
#pragma once

#include <optional>
#include <string>

#include "scheduler/config.h"
#include "scheduler/plan.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

struct Belief {
  // Why the metrics cannot be used; empty when they can. The fields up to `known` are meaningless when it is set.
  std::string metrics_problem;
  double unmeasured_seconds = 0;  // for so long, at the least; 0 when they can be used
  bool enough_batches = false;
  double wait_share = 0;        // wait / (wait + compute)
  bool starved = false;         // waits noticeably: the measured rate is the supply
  bool sated = false;           // practically never waits: the measured rate is the demand
  double busy_cores = 0;        // CPU at work on data, local and remote
  double busy_local_cores = 0;  // the feeders' part of it

  // True once there has been a demand and a service rate, now or earlier. The rest is meaningless before.
  bool known = false;
  double demand_samples_per_second = 0;
  double local_rate_per_core = 0;
  double remote_rate_per_core = 0;
  double knee_cores = 0;           // with feedback
  double measured_knee_cores = 0;  // without
  double local_cores = 0;          // what the feeders' CPU may be counted on for
  double local_held_cores = 0;     // what the feeders have and use: requested, or more where CPU is idle
  Confidence confidence = Confidence::kNone;
  std::optional<double> useless_above_cores;  // remote cores beyond this number were tried, and brought no speed

  std::optional<EstimatorMemory> memory;  // to carry on

  // Local-equivalent value of a remote core: mu_R / mu_L. REQUIRES: known
  double efficiency() const { return remote_rate_per_core / local_rate_per_core; }

  // Remote cores that cover what local cores leave of a knee, times headroom. REQUIRES: known
  double remote_cores_for(double knee, double headroom) const;

  // x with what the job holds, feeders by what is requested for them: how the plan counts where it sets their CPU.
  // REQUIRES: known
  double held_supply_ratio(const Job& job) const;

  // x with so many remote cores. Unknown rates: as if the present state were the knee (proportional start).
  double supply_ratio(double remote_cores, const Job& job, const Config& config) const;
};

Belief estimate(const Job& job, double now_seconds, const Config& config);

// Whole workers of the job's size that make up so many cores.
int whole_workers(double cores, const Job& job);

// Remote cores of the workers that have been ready since `since_seconds`.
double ready_cores(const Job& job, double since_seconds);

}  // namespace sluice::scheduler
