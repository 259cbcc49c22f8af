// A fixture of running jobs whose grants are set by hand, for tests of supply.h.
#pragma once

#include <utility>

#include "scheduler/simulator/world/simulated_cluster.h"
#include "scheduler/simulator/world/supply.h"

namespace sluice::simulator::testing {

struct ManualWorld {
  Cluster cluster;
  Workload specs;
  std::vector<JobState> jobs;
  SimulatedCluster simulated;

  ManualWorld(Cluster c, Workload w)
      : cluster(std::move(c)), specs(std::move(w)), jobs(specs.size()), simulated(cluster, jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].spec = &specs[i];
      jobs[i].index = static_cast<int>(i);
      jobs[i].knee_cores = specs[i].knee_cores_per_gpu * specs[i].gpus;
      simulated.start_trainer(jobs[i], simulated.find_hosts(specs[i].gpus), 0);
    }
  }
  void share() {
    for (int node = 0; node < static_cast<int>(simulated.nodes().size()); ++node)
      share_host_cpu(simulated.nodes()[node], node, jobs, cluster.physics);
  }
  void add_workers(JobState& job, int node, int count) {
    for (int i = 0; i < count; ++i) job.workers.push_back({"w", node, 1000, 0, 0, 0, -1});
    simulated.nodes()[node].worker_millicores += 1000 * count;
  }
  Rates rates(int i, double storage = 1e9) {
    return rates_of(jobs[i], simulated.nodes(), 100, storage, cluster.physics);
  }
};

}  // namespace sluice::simulator::testing
