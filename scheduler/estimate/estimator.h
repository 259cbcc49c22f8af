// Step 1 of decide(), "estimate": a job's demand and the rate of a core, from one measurement and the memory of earlier
// ones.
//
// Operational laws, every figure from the clients' and executors' own accounting:
//   D     = samples / compute seconds                exact even while starved: waiting is left out of the denominator
//   mu_L  = local samples / local busy seconds       per source, never lumped: a mixture's rate moves with the mix
//   mu_R  = remote samples / remote busy seconds     a throttled executor is slower, not less efficient: same mu
//   K     = D / mu_L                                 the knee, in local-equivalent cores
// One measurement gives the target; later ones correct it:
//   smoothing   two averages of knee and rates (tracked.h): noise does not reach the workers, a lasting change does
//   feedback    once the workers in force have been at work for a whole window, or for several where the knee is noisy:
//               starved although supply looks sufficient, slower than the curve says, and with less than half of the
//               prefetch queue filled, raises the knee by the shortfall, at least 10 %; sated with supply to spare
//               lowers it by 3 %, but not to a value that starved the job before, and, once every rate was measured,
//               not below what the measured rates say
//   judgement   growth that promised 30 % or more, and a whole window later brought less than a quarter of it, both
//               against the speed before and against the curve, was useless: something else is short, whatever the
//               executors look like. The job goes back to its earlier workers
//   reads       a starved job whose executors are blocked in reads, and as fast with another supply of CPU: its reads
//               limit it (read_limit.h). It gets no more CPU than it holds or uses, and its knee is not raised
// Without a usable measurement nothing is learnt, and nothing forgotten.
// A rate that was never measured is derived from the other: mu_R = 0.77 mu_L.
//
// Thread safety: pure functions on values.
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/estimate.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

Estimate estimate_of(const Job& job, double now_seconds, const Config& config);

// Seconds that a rank's training loop computes for a batch. REQUIRES: a measurement with batches
double compute_seconds_per_batch(const Job& job);

// Whole workers of the job's size that make up so many cores.
int whole_workers(double cores, const Job& job);

// Remote cores of the workers that have been ready since `since_seconds`.
double ready_cores(const Job& job, double since_seconds);

}  // namespace sluice::scheduler
