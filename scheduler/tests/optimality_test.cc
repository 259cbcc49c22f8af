// How much the greedy of growth.h, with whole workers on real nodes, gives away against the best division of cores.
#include <algorithm>

#include "scheduler/allocate/floor.h"
#include "scheduler/allocate/growth.h"
#include "scheduler/allocate/placement.h"
#include "scheduler/model/progress.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/snapshot_lp.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Value reached / best value; 1 where there is nothing to decide.
double share_of_best(const ClusterSnapshot& snapshot, const Config& config) {
  NodeTable nodes(snapshot.nodes, 1000);
  std::vector<JobPlan> plans;
  std::vector<JobAllocation> allocations = make_allocations(snapshot, nodes, config, plans);
  grant_floors(allocations, nodes, config);
  const double best = best_value(allocations, nodes, config);
  Growth growth(allocations, nodes, snapshot, config);
  growth.run();
  place(allocations, nodes, growth, Budgets(snapshot));
  double reached = 0;
  for (const JobAllocation& c : allocations)
    if (c.adjustable && c.estimate->known) reached += c.worth * progress(c.supply(), config.softmin_exponent);
  return best > 0 ? reached / best : 1;
}

TEST_CASE("the greedy reaches 99 % of the best allocation on average, and never much less") {
  Config config;
  config.held_bonus = 0;  // hysteresis prefers what is there to what is best, on purpose
  double sum = 0, worst = 1;
  constexpr int kClusters = 120;
  const bool groups = GENERATE(false, true);
  CAPTURE(groups);
  for (unsigned seed = 1; seed <= kClusters; ++seed) {
    ClusterSnapshot snapshot = random_cluster(seed, {.most_hosts = 6, .most_cpu_nodes = 3, .groups = groups});
    // Workers stay where they are, be it on nodes that another job has no choice but to use.
    for (Job& job : snapshot.jobs)
      if (groups) job.workers.clear(), job.allocated_workers = 0;
    const double share = share_of_best(snapshot, config);
    CAPTURE(seed);
    CHECK(share <= 1.001);
    sum += share;
    worst = std::min(worst, share);
  }
  CAPTURE(sum / kClusters, worst);
  CHECK(sum / kClusters >= 0.99);
  CHECK(worst >= (groups ? 0.95 : 0.97));
}

}  // namespace
}  // namespace sluice::scheduler::testing
