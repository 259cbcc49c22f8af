// The default policy: from a snapshot of the cluster to local CPU and data workers for every job.
//
// Six steps, in this order: estimate, target, floor, grow, place, explain. estimate/ and allocate/ hold the first five,
// explain.h the last one. Read decide.cc for the overview, and docs/scheduling.md for the explanation.
//
// Model (docs/scheduling.md; glossary of symbols)
//   D      demand: samples/s the trainers would consume if they never waited
//   mu_L   samples/s per core of local work (the feeder's CPU);   mu_R   the same for remote workers
//   K      knee D / mu_L: local-equivalent cores at which supply meets demand
//   x      supply / demand = (mu_L l + mu_R r) / D with l local and r remote cores
//   f(x)   progress (1 + x^-q)^(-1/q): the share of full speed that the job reaches
//   v      value of a core = weight sqrt(g) (df / core) / sqrt(remaining hours); g = GPUs of the job
//
// Guarantees (each is a property test in decide_property_test.cc, for feeders and workers together in
// joint_property_test.cc, and under all objectives and limits in guarantees_property_test.cc and
// limits_property_test.cc)
//   1. Pure and deterministic: the same snapshot gives the same plan, whatever the order of jobs, nodes and workers.
//   2. No node is given more than it has free; workers that are starting count, workers that are draining do not.
//   3. min_workers <= workers <= max_workers for every running job in mode Auto, unless (for min) capacity, a quota, a
//      network, the budget or placement Local forbids.
//   4. A running job without usable metrics keeps its workers, and no other job's growth takes them.
//   5. A job that hardly waits never gets additional workers. (Where the plan sets the feeders' CPU: one that never
//      waits gets no higher supply; one may be replaced by the other.)
//   6. Raising a job's priority never lowers its workers.              (workers of one size; not under objective cost)
//   7. Stable: applying a plan and deciding again on the same measurements changes nothing.       (workers of one size;
//      of mixed sizes, whose packing may leave gaps for each other, it settles after a few decisions)
//   8. Work-conserving: no job is told that there is no room while there is.                     (workers of one size)
//   9. Every job whose feeders' CPU the plan sets gets at least min(its GPU-proportional share, 1.05 of its need, but a
//      core per GPU) on its own hosts, as far as workers that must not be stopped leave room; beside these no
//      feeder shrinks. Feeders that slowed a trainer down get less for a while: for another job's trainer no less than
//      a core per GPU of their share.
//  10. Workers that the plan adds never exceed quotas and the budget, minima included; a job that is told that one of
//      them binds could not have had another worker.                                            (workers of one size)
//  11. More cores, or a job less, never lower what the others' speed is worth to the objective: by no more than pieces
//      and whole workers cost, 0.2 %. Speed counts as far as it is wanted: up to where the curve is flat, less the half
//      worker that is not started for less than half of it.                                       (workers of one size)
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/plan.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// Thread safety: may be called from any thread. Cost: O((J + W) (log J + log N)) for W workers, J jobs and N nodes;
// bench/scheduler measures it.
Plan decide(const ClusterSnapshot& snapshot, const Config& config);

}  // namespace sluice::scheduler
