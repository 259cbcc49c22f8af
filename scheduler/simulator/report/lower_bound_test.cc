#include "scheduler/simulator/report/lower_bound.h"

#include <algorithm>

#include "scheduler/simulator/report/experiment.h"
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

TEST_CASE("The bound follows its terms: GPUs, arrivals, CPU") {
  const Cluster cluster = testing::small_cluster();
  struct Row {
    const char* situation;
    Workload workload;
    double least, most;  // seconds of the mean completion
  };
  const Row rows[] = {
      {"two that fit beside each other", {job(0, 8, 1000, 1), job(0, 8, 3000, 1)}, 1999, 2000.1},
      {"one after the other by arrival", {job(0, 16, 1000, 1), job(1000, 16, 1000, 1)}, 999, 1000.1},
      {"the short one first", {job(0, 16, 3000, 1), job(0, 16, 100, 1)}, 0.85 * 1600, 1600.1},
      {"work that needs no CPU to speak of", {job(0, 16, 1000, 0.01)}, 999, 1000.1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const double least = bound(cluster, row.workload, 20000);
    CHECK(least >= row.least);
    CHECK(least <= row.most);
  }
}

TEST_CASE("More GPUs, more CPU, less work or a cheaper sample never raise the bound") {
  Workload jobs;
  for (int i = 0; i < 12; ++i) jobs.push_back(job(100 * i, 1 << (i % 5), 300 + 100 * (i % 4), 2 + 2 * (i % 5)));
  const Cluster cluster = testing::small_cluster();
  const double base = bound(cluster, jobs, 40000);
  Cluster gpus = cluster, cores = cluster, remote = cluster;
  gpus.groups[0].count = 3;
  cores.groups[1].cores = 128;
  remote.physics.remote_efficiency = 1;
  for (const Cluster& better : {gpus, cores, remote}) CHECK(bound(better, jobs, 40000) <= base * (1 + 1e-6));
  Workload shorter = jobs, cheaper = jobs;
  for (JobSpec& each : shorter) each.ideal_seconds *= 0.9;
  for (JobSpec& each : cheaper) each.knee_cores_per_gpu *= 0.5;
  CHECK(bound(cluster, shorter, 40000) < base);
  CHECK(bound(cluster, cheaper, 40000) <= base * (1 + 1e-6));
}

TEST_CASE("Of costs that change the bound takes the least, so that it holds for every order") {
  Cluster cluster = testing::small_cluster();
  const Workload one = {job(0, 16, 10000, 10)};
  const double steady = bound(cluster, one, 80000);
  cluster.physics.cost_change = 0.5;
  cluster.physics.cost_change_seconds = 1000;
  CHECK(bound(cluster, one, 80000) < steady);
  testing::ScriptedPolicy policy([](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 64; });
  const auto run = simulate(cluster, one, policy, {});
  REQUIRE(run.ok());
  CHECK(run->jobs[0].finish_seconds >= bound(cluster, one, 80000));
}

TEST_CASE("A horizon that no schedule reaches has no bound, and that is an error, not a figure") {
  const auto least = least_mean_completion(testing::small_cluster(), {job(0, 16, 1000, 1)}, 1, 500);
  REQUIRE_FALSE(least.ok());
  CHECK(least.error().code() == ErrorCode::kInternal);
  CHECK_THAT(least.error().message(), Catch::Contains("the solver gave up"));
}

TEST_CASE("The order of the list and the horizon hardly matter") {
  Workload jobs;
  for (int i = 0; i < 15; ++i) jobs.push_back(job(80 * i, 1 << (i % 4), 200 + 60 * (i % 6), 1 + i % 7));
  const double base = bound(testing::small_cluster(), jobs, 10000);
  CHECK(bound(testing::small_cluster(), jobs, 30000) == Approx(base).epsilon(0.03));
  std::reverse(jobs.begin(), jobs.end());
  CHECK(bound(testing::small_cluster(), jobs, 10000) == Approx(base).epsilon(0.03));
}

}  // namespace
}  // namespace sluice::simulator
