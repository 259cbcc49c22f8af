// Runs are compared with each other, so nothing but the policy may tell them apart.
#include "scheduler/simulator/report/experiment.h"

#include <algorithm>
#include <set>

#include "scheduler/simulator/report/report.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;

Scenario small_scenario() {
  Scenario scenario;
  scenario.name = "small";
  scenario.cluster = testing::small_cluster();
  scenario.cluster.physics.metrics_noise = 0.2;
  scenario.cluster.physics.node_failure_hours = 2;
  scenario.cluster.physics.cost_change = 0.3;
  scenario.cluster.physics.cost_change_seconds = 100;
  for (int i = 0; i < 10; ++i) scenario.jobs.push_back(job(40 * i, 1 << (i % 4), 300 + 50 * i, 1.0 + i));
  return scenario;
}

Grid grid_of_run(const Scenario& scenario, const std::vector<std::string>& policies, int seeds = 2, int threads = 1) {
  GridOptions options;
  options.policies = policies;
  options.seeds = seeds;
  options.threads = threads;
  auto grid = run_grid(scenario, {}, options);
  REQUIRE(grid.ok());
  return std::move(grid).value();
}

std::vector<double> finishes(const Grid& grid, const std::string& policy, int seed) {
  std::vector<double> seconds;
  for (const JobRecord& each : grid.runs[grid.column(policy)][seed].jobs) seconds.push_back(each.finish_seconds);
  return seconds;
}

TEST_CASE("The same grid gives the same bytes, however many threads run it") {
  const Scenario scenario = small_scenario();
  const std::vector<std::string> policies = {"static", "sluice", "hpa", "cachew", "perfect"};
  const std::string once = json_report(scenario, grid_of_run(scenario, policies));
  CHECK(json_report(scenario, grid_of_run(scenario, policies)) == once);
  CHECK(json_report(scenario, grid_of_run(scenario, policies, 2, 4)) == once);
}

TEST_CASE("Neither the order of the policies nor their company changes a run") {
  const Scenario scenario = small_scenario();
  const Grid one = grid_of_run(scenario, {"static", "keda", "sluice"});
  const Grid other = grid_of_run(scenario, {"sluice", "burst", "keda", "static", "synergy"});
  for (const char* policy : {"static", "keda", "sluice"})
    for (int seed = 0; seed < 2; ++seed) CHECK(finishes(one, policy, seed) == finishes(other, policy, seed));
}

TEST_CASE("A seed is a seed: the second of two is the second of three") {
  const Scenario scenario = small_scenario();
  const Grid two = grid_of_run(scenario, {"static", "sluice"}, 2);
  const Grid three = grid_of_run(scenario, {"static", "sluice"}, 3);
  CHECK(finishes(two, "sluice", 1) == finishes(three, "sluice", 1));
  CHECK(finishes(two, "sluice", 0) != finishes(two, "sluice", 1));
}

TEST_CASE("Failures meet every policy alike") {
  Scenario scenario = small_scenario();
  // One gang that is never through before the end of the others: it meets the failures of both hosts.
  scenario.jobs = {job(0, 16, 20000, 1e-6)};
  scenario.cluster.physics.checkpoint_seconds = 1;
  const Grid grid = grid_of_run(scenario, {"static", "sluice", "hpa", "no-stall"}, 1);
  std::set<int> restarts;
  for (const auto& runs : grid.runs) restarts.insert(runs[0].jobs[0].restarts);
  CHECK(restarts.size() == 1);
  CHECK(*restarts.begin() > 2);
}

TEST_CASE("Static is always run, because harm is measured against it") {
  const Grid grid = grid_of_run(small_scenario(), {"sluice"}, 1);
  CHECK(grid.policies == std::vector<std::string>{"sluice", "static"});
  CHECK(at(grid.figures[1][0], Figure::kWorstAgainstStatic) == Approx(1));
  CHECK(grid.column("hpa") == -1);
}

TEST_CASE("An unknown policy is an error before anything is run, and says which there are") {
  GridOptions options;
  options.policies = {"static", "magic"};
  Scenario endless = small_scenario();
  endless.jobs[0].ideal_seconds = 1e12;  // would fail, if it were run
  const auto grid = run_grid(endless, {}, options);
  REQUIRE_FALSE(grid.ok());
  CHECK(grid.error().code() == ErrorCode::kInvalidArgument);
  CHECK_THAT(grid.error().message(), Catch::Contains("magic") && Catch::Contains("knee-proportional"));
}

TEST_CASE("A job that fits nowhere is named before it is waited for") {
  Scenario scenario = small_scenario();
  scenario.jobs[3].gpus = 17;
  scenario.jobs[3].name = "the large one";
  GridOptions options;
  options.policies = {"static"};
  const auto grid = run_grid(scenario, {}, options);
  REQUIRE_FALSE(grid.ok());
  CHECK_THAT(grid.error().message(), Catch::Contains("the large one wants 17 GPUs"));
}

TEST_CASE("No policy is faster than the limit no-stall, and perfect information does no harm") {
  Scenario scenario = small_scenario();
  scenario.cluster.physics.node_failure_hours = 0;
  const Grid grid = grid_of_run(scenario, all_policies());
  const auto mean_jct = [&](const std::string& policy) {
    return mean(grid.values(grid.column(policy), Figure::kMeanJct));
  };
  for (const std::string& policy : all_policies()) {
    CAPTURE(policy);
    CHECK(mean_jct(policy) >= 0.999 * mean_jct("no-stall"));
  }
  CHECK(mean_jct("perfect") <= 1.02 * mean_jct("sluice"));
  CHECK(mean_jct("sluice") < mean_jct("static"));
}

TEST_CASE("Wrong rates slow Sluice down, but none of the limits") {
  Scenario scenario = small_scenario();
  const std::vector<std::string> policies = {"static", "sluice", "true-rates", "no-feedback", "perfect"};
  const Grid right = grid_of_run(scenario, policies);
  scenario.cluster.physics.busy_cpu_error = 1;
  const Grid wrong = grid_of_run(scenario, policies);
  for (int seed = 0; seed < 2; ++seed) {
    CHECK(finishes(right, "true-rates", seed) == finishes(right, "sluice", seed));
    CHECK(finishes(wrong, "true-rates", seed) == finishes(right, "sluice", seed));
    CHECK(finishes(wrong, "perfect", seed) == finishes(right, "perfect", seed));
    CHECK(finishes(wrong, "static", seed) == finishes(right, "static", seed));
    CHECK(finishes(wrong, "sluice", seed) != finishes(right, "sluice", seed));
    CHECK(finishes(wrong, "no-feedback", seed) != finishes(wrong, "sluice", seed));
  }
}

TEST_CASE("Where no trainer says how long it will train, unannounced is the same as sluice") {
  Scenario scenario = small_scenario();
  const std::vector<std::string> policies = {"static", "sluice", "unannounced", "perfect"};
  const Grid said = grid_of_run(scenario, policies);
  scenario.cluster.physics.remaining_time_known = false;
  const Grid silent = grid_of_run(scenario, policies);
  for (int seed = 0; seed < 2; ++seed) {
    CHECK(finishes(silent, "unannounced", seed) == finishes(silent, "sluice", seed));
    CHECK(finishes(said, "unannounced", seed) == finishes(silent, "sluice", seed));
    CHECK(finishes(said, "sluice", seed) != finishes(silent, "sluice", seed));
    CHECK(finishes(silent, "perfect", seed) == finishes(said, "perfect", seed));
  }
}

TEST_CASE("With the default noise of metrics, little-noise is the same as sluice") {
  Scenario scenario = small_scenario();
  scenario.cluster.physics.metrics_noise = Physics{}.metrics_noise;
  const std::vector<std::string> policies = {"static", "sluice", "little-noise"};
  const Grid calm = grid_of_run(scenario, policies);
  scenario.cluster.physics.metrics_noise = 0.5;
  const Grid noisy = grid_of_run(scenario, policies);
  for (int seed = 0; seed < 2; ++seed) {
    CHECK(finishes(calm, "little-noise", seed) == finishes(calm, "sluice", seed));
    CHECK(finishes(noisy, "little-noise", seed) == finishes(calm, "sluice", seed));
    CHECK(finishes(noisy, "sluice", seed) != finishes(calm, "sluice", seed));
  }
}

TEST_CASE("Where cores are dear, sluice-cost spends less than sluice, and at the default prices it spends something") {
  Scenario scenario = small_scenario();
  const std::vector<std::string> policies = {"static", "sluice", "sluice-cost"};
  const auto workers_of = [&](double core_price) {
    scenario.cluster.physics.core_price_per_hour = core_price;
    const Grid grid = grid_of_run(scenario, policies, 1);
    return std::pair(grid.values(grid.column("sluice"), Figure::kWorkersStarted)[0],
                     grid.values(grid.column("sluice-cost"), Figure::kWorkersStarted)[0]);
  };
  const auto [usual, bought] = workers_of(0.05);
  const auto [all_the_same, bought_dear] = workers_of(5);
  CHECK(all_the_same == usual);
  CHECK(bought > 0);
  CHECK(bought_dear < bought);
  CHECK(bought_dear < usual);
}

TEST_CASE("The policies of a report are the registered ones and the limits, each once") {
  const auto names = all_policies();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(names.front() == "static");
  CHECK(names.back() == "no-stall");
  for (const char* want : {"burst", "fixed-workers", "knee-proportional", "hpa", "keda", "cachew", "pecan", "fastflow",
                           "synergy", "tfdata", "sluice", "perfect"})
    CHECK(std::count(names.begin(), names.end(), want) == 1);
}

}  // namespace
}  // namespace sluice::simulator
