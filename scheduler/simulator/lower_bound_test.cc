#include "scheduler/simulator/lower_bound.h"

#include <algorithm>

#include "scheduler/simulator/experiment.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;

double bound(const Cluster& cluster, const Workload& workload, double horizon = 1e5) {
  const auto least = least_mean_completion(cluster, workload, 1, horizon);
  REQUIRE(least.ok());
  return *least;
}

TEST_CASE("A job alone cannot end before its ideal time, and the bound says so") {
  CHECK(bound(testing::small_cluster(), {job(50, 4, 1000, 5)}) == Approx(1000).epsilon(1e-6));
}

TEST_CASE("Two gangs that need all GPUs run one after the other") {
  Cluster cluster = testing::small_cluster();
  const double least = bound(cluster, {job(0, 16, 1000, 1), job(0, 16, 3000, 1)}, 10000);
  CHECK(least <= (1000 + 4000) / 2.0 + 1e-6);
  CHECK(least >= 0.9 * (1000 + 4000) / 2.0);
}

TEST_CASE("Where CPU is what lacks, the bound follows the CPU") {
  // 48 local and 49 remote cores' worth for a gang that wants 160: at most 0.61 of full speed.
  const double least = bound(testing::small_cluster(), {job(0, 16, 10000, 10)}, 40000);
  CHECK(least > 10000 * 1.2);
  CHECK(least <= 10000 / progress(97.28 / 160, 6));
}

TEST_CASE("No policy beats the lower bound, nor the limits their own runs") {
  Scenario scenario;
  scenario.name = "small";
  scenario.cluster = testing::small_cluster();
  for (int i = 0; i < 24; ++i)
    scenario.jobs.push_back(job(40 * i, 1 << (i % 4), 200 + 90 * (i % 7), i % 3 == 0 ? 0.5 : 2.0 + 3 * (i % 5)));
  GridOptions options;
  options.policies = all_policies();
  options.seeds = 1;
  const auto grid = run_grid(scenario, {}, options);
  REQUIRE(grid.ok());
  double horizon = 0;
  for (const auto& runs : grid->runs) horizon = std::max(horizon, runs[0].makespan_seconds);
  const double least = bound(scenario.cluster, scenario.jobs, horizon);
  const double no_stall = grid->values(grid->column("no-stall"), Figure::kMeanJct)[0];
  CHECK(least > 0);
  CHECK(no_stall >= least);
  for (std::size_t policy = 0; policy < grid->policies.size(); ++policy) {
    INFO(grid->policies[policy]);
    const double mean_jct = grid->values(static_cast<int>(policy), Figure::kMeanJct)[0];
    CHECK(mean_jct >= least);
    CHECK(mean_jct >= 0.999 * no_stall);
    CHECK(grid->runs[policy][0].overcommitted_steps == 0);
  }
  // What knows everything does no worse than what has to find out.
  CHECK(grid->values(grid->column("perfect"), Figure::kMeanJct)[0] <=
        1.02 * grid->values(grid->column("sluice"), Figure::kMeanJct)[0]);
}

}  // namespace
}  // namespace sluice::simulator
