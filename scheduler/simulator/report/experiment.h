// Policies x seeds on one scenario, in parallel, compared pair by pair.
//
// Besides the registered policies there are two that no cluster can have, as limits:
//   no-stall  every job runs at full speed from its first second
//   perfect   Sluice, told the truth at once: no noise, no age of metrics, no start-up of workers
// and two that show the cost of wrong rates (Physics::busy_cpu_error):
//   true-rates   Sluice, where the executors report their busy CPU as it is
//   no-feedback  Sluice, which believes the rates whatever comes of it
// and one that shows the cost of noisy metrics:
//   little-noise  Sluice, where the metrics are as noisy as they are by default
// and one that shows the cost of silent trainers:
//   unannounced  Sluice, where no trainer says how long it will train
// and one that buys CPU by the hour:
//   sluice-cost  Sluice with the objective cost
//
// A name may say the cache, too, as "sluice+lru" (data_set.h): the scheduler of the one with the cache of the other.
// Else Sluice, with its limits, has its own cache, and Cachew its: never evicting, as one version that stays. All
// others have that of the scenario.
//
// Thread safety: free functions.
#pragma once

#include <string>
#include <vector>

#include "scheduler/simulator/input/scenario.h"
#include "scheduler/simulator/report/figures.h"
#include "scheduler/simulator/report/statistics.h"

namespace sluice::simulator {

struct GridOptions {
  std::vector<std::string> policies;  // the others are compared with the first
  int seeds = 8;                      // 1 .. seeds
  int threads = 2;
  bool timeline = false;  // of the first seed
};

struct Grid {
  std::vector<std::string> policies;
  std::vector<Workload> workloads;            // by seed
  std::vector<std::vector<RunRecord>> runs;   // by policy, seed
  std::vector<std::vector<Figures>> figures;  // by policy, seed
  Bound bound;                                // over the jobs of all seeds

  // The column of a policy; -1: it is not in the grid.
  int column(const std::string& policy) const;
  std::vector<double> values(int policy, Figure figure) const;  // by seed
};

// Registered ones and the limits, in the order of reports. The others differ from Sluice only where metrics are wrong.
std::vector<std::string> all_policies();

Result<RunRecord> run_policy(const std::string& policy, const Cluster& cluster, const Workload& workload,
                             const RunOptions& options);

// Errors: those of workload_of() and simulate(), and InvalidArgument for an unknown policy, before anything runs.
Result<Grid> run_grid(const Scenario& scenario, const Sources& sources, const GridOptions& options);

}  // namespace sluice::simulator
