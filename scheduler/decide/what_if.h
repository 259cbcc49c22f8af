// The gain of more CPU: for status, kubectl and dashboards.
//
// Both are estimates by the model of decide.h, from the same measurements as the plan.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/decide/utilisation.h"
#include "scheduler/model/config.h"
#include "scheduler/model/plan.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// By how much the job would step faster with `more` workers of `worker_millicores` than the plan recommends; percent.
// Negative numbers take workers away. 0 where nothing is known about the job.
double gain_of_workers_percent(const JobPlan& plan, std::int64_t worker_millicores, int more, const Config& config);

// Numbers of workers more to ask about, where the caller names none.
inline constexpr int kUsualWorkersMore[] = {1, 2, 4};

// "+3 workers: +11 % steps/s"
std::string gain_text(int more_workers, double gain_percent);

struct JobGain {
  JobId id;
  int workers = 0;          // that the job would get in addition, or lose
  double gain_percent = 0;  // of its steps per second
};

struct NodesGain {
  std::vector<JobGain> jobs;  // the running ones, ordered by id
  Utilisation utilisation;    // with the nodes
};

// Each job's gain on a cluster with these nodes in addition. Two whole decisions are taken for it. All jobs may use
// the nodes: they have no taints, and every label that a job asks for. Each is a domain
// of its own, in every topology.
// REQUIRES: no node of the snapshot has one of their names.
NodesGain gain_of_nodes(const ClusterSnapshot& snapshot, const std::vector<Node>& more, const Config& config);

}  // namespace sluice::scheduler
