// Random clusters: GPU hosts with trainers, nodes with CPU only. Unless asked for otherwise the plan sets feeders' CPU
// and workers together.
//
// The same seed gives the same cluster. Jobs are seen as after a while of running: measured, and without noise unless
// asked for. Their workers are on nodes that have room for them, so no limit of a node is exceeded at the start.
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler::testing {

struct ClusterShape {
  int most_hosts = 4;
  int most_cpu_nodes = 4;
  double most_knee_per_gpu = 24;  // cores; 0.5 is a language model
  bool missing_metrics = false;   // some jobs without
  bool priorities = false;
  bool quotas = false;
  double noise = 0;  // relative, of measured rates

  bool gangs = false;             // some jobs span several hosts
  bool fixed_feeders = false;     // the feeders' CPU of some jobs is fixed
  bool worker_sizes = false;      // a quarter of a core to three cores, instead of one core
  bool workers_anywhere = false;  // on trainers' hosts, too; some are starting, draining or lost
  bool minima = false;            // and near maxima
  bool modes = false;             // Off and Recommend, placements Local and Remote
  bool prices = false;            // some nodes are spot
  bool cheap_hosts = false;       // some nodes cost next to nothing, hosts with GPUs among them
  bool budget = false;
  bool cordoned = false;  // some nodes take no new workers
  bool groups = false;    // nodes of four kinds; some jobs may not use some of them
  bool memory = false;
  bool networks = false;
};

// All of it at once.
ClusterShape everything();

ClusterSnapshot random_cluster(unsigned seed, const ClusterShape& shape = {});

// Workers over eight decisions, after four to settle, while nothing changes but the noise of the measurements.
struct Churn {
  int changed = 0;  // given or taken
  int held = 0;     // the sum of the workers before each decision
};
Churn churn_under_noise(unsigned seed, const ClusterShape& shape, const Config& config);

}  // namespace sluice::scheduler::testing
