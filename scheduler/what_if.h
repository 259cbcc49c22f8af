// What more CPU would bring: for status, kubectl and dashboards.
//
// Both are estimates by the model of decide.h, from the same measurements as the plan.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/plan.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

// By how much the job would step faster with `more` workers than the plan recommends; percent. Negative numbers take
// workers away. 0 where nothing is known about the job.
double gain_of_workers_percent(const JobPlan& plan, const Job& job, int more, const Config& config);

// "+3 workers: +11 % steps/s"
std::string gain_text(int more_workers, double gain_percent);

struct JobGain {
  JobId id;
  int workers = 0;          // that the job would get in addition, or lose
  double gain_percent = 0;  // of its steps per second
};

// What a cluster with these nodes in addition would give to each running job, in the order of the ids. A whole decision
// is taken for it.
std::vector<JobGain> gain_of_nodes(const ClusterSnapshot& snapshot, const std::vector<Node>& more,
                                   const Config& config);

}  // namespace sluice::scheduler
