// Random clusters in which the plan sets feeders' CPU and workers together: GPU hosts with trainers, nodes with CPU
// only.
//
// The same seed gives the same cluster. Jobs are seen as they would be after a while of running: measured, without
// noise unless asked for, with workers on nodes that have room for them.
#pragma once

#include "scheduler/snapshot.h"

namespace sluice::scheduler::testing {

struct ClusterShape {
  int most_hosts = 4;
  int most_cpu_nodes = 4;
  double most_knee_per_gpu = 24;  // cores; 0.5 is a language model
  bool missing_metrics = false;   // some jobs without
  bool priorities = false;
  bool waiting_jobs = false;
  bool quotas = false;
  double noise = 0;  // relative, of measured rates
};

ClusterSnapshot random_cluster(unsigned seed, const ClusterShape& shape = {});

// The jobs as a metrics source would show them a window later, with other noise. `truth`: the same jobs, measured
// without.
ClusterSnapshot observed_again(ClusterSnapshot snapshot, const ClusterSnapshot& truth, unsigned seed, double noise);

}  // namespace sluice::scheduler::testing
