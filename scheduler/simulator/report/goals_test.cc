// What is printed beside a goal, and which runs it is made of.
#include "scheduler/simulator/report/goals.h"

#include <algorithm>

#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::grid_of;
using Completions = std::vector<std::pair<std::string, double>>;

const Completions kLimits = {{"static", 300}, {"sluice", 100}, {"perfect", 98}, {"no-stall", 90}};

const Judged* named(const std::vector<Judged>& all, const std::string& figure) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Judged& j) { return j.figure == figure; });
  return found == all.end() ? nullptr : &*found;
}

TEST_CASE("The peer to beat is whichever is the best here, and every peer is told") {
  struct Row {
    const char* situation;
    Completions peers;
    const char* best;
    double ratio;
  };
  const Row rows[] = {
      {"one that keeps off GPU hosts", {{"hpa", 120}, {"hpa-everywhere", 130}, {"burst", 200}}, "hpa", 1.2},
      {"the same one where it may use them",
       {{"hpa", 160}, {"hpa-everywhere", 125}, {"burst", 200}},
       "hpa-everywhere",
       1.25},
      {"one that beats us", {{"keda", 95}, {"pecan", 140}}, "keda", 0.95},
      {"not a peer: another scheduler's limit", {{"knee-proportional", 90}, {"cachew-1", 150}}, "cachew-1", 1.5},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    auto completions = kLimits;
    completions.insert(completions.end(), row.peers.begin(), row.peers.end());
    const auto all = judge({}, grid_of(completions), {});
    REQUIRE(all.ok());
    REQUIRE(named(*all, "over_best_peer") != nullptr);
    CHECK(named(*all, "over_best_peer")->remark == row.best);
    CHECK(named(*all, "over_best_peer")->value.value == Approx(row.ratio));
    for (const auto& [peer, seconds] : row.peers) {
      if (peer == "knee-proportional") continue;
      REQUIRE(named(*all, "over_" + peer) != nullptr);
      CHECK(named(*all, "over_" + peer)->value.value == Approx(seconds / 100));
    }
    CHECK(named(*all, "over_knee-proportional") == nullptr);
    CHECK(named(*all, "share_of_perfect")->value.value == Approx(0.98));
  }
}

TEST_CASE("Each ratio has what it says above and below the line") {
  const auto all = judge({}, grid_of(kLimits), {80, 80});
  REQUIRE(all.ok());
  struct Row {
    const char* figure;
    double want;
  };
  const Row rows[] = {{"jct_gain", 3},
                      {"no_stall_gain", 300.0 / 90},
                      {"share_of_perfect", 0.98},
                      {"over_lower_bound", 100.0 / 80},
                      {"no_stall_over_lower_bound", 90.0 / 80},
                      {"allocated_gain", 1},
                      {"wall_gain", 1}};
  for (const Row& row : rows) {
    CAPTURE(row.figure);
    REQUIRE(named(*all, row.figure) != nullptr);
    CHECK(named(*all, row.figure)->value.value == Approx(row.want));
  }
  CHECK(named(*all, "over_best_peer") == nullptr);   // no peer to compare with
  CHECK(named(*all, "over_true_rates") == nullptr);  // the rates are true
  CHECK(named(*all, "seconds_to_90") == nullptr);    // no goal asks
}

TEST_CASE("Without lower bounds their figures are left out, and a goal of theirs is no error") {
  Scenario scenario;
  scenario.goals = {{"over_lower_bound", {}, 1.1}};
  const auto all = judge(scenario, grid_of(kLimits), {});
  REQUIRE(all.ok());
  CHECK(named(*all, "over_lower_bound") == nullptr);
}

TEST_CASE("What wrong rates cost is counted against true ones, with feedback and without it") {
  auto completions = kLimits;
  completions.insert(completions.end(), {{"true-rates", 96}, {"no-feedback", 120}});
  Scenario scenario;
  scenario.goals = {{"over_true_rates", {}, 1.08}, {"no_feedback_over_true_rates", {}, 1.2}};
  const auto all = judge(scenario, grid_of(completions), {});
  REQUIRE(all.ok());
  CHECK(named(*all, "over_true_rates")->value.value == Approx(100.0 / 96));
  CHECK(named(*all, "over_true_rates")->reached());
  CHECK(named(*all, "no_feedback_over_true_rates")->value.value == Approx(1.25));
  CHECK_FALSE(named(*all, "no_feedback_over_true_rates")->reached());
}

TEST_CASE("What noise costs is counted against little of it: in workers that start, and in completion time") {
  auto completions = kLimits;
  completions.emplace_back("little-noise", 80);
  Grid grid = grid_of(completions);
  for (const auto& [policy, started] : {std::pair{"sluice", 5000.0}, {"little-noise", 2000.0}})
    for (Figures& figures : grid.figures[grid.column(policy)]) at(figures, Figure::kWorkersStarted) = started;
  Scenario scenario;
  scenario.goals = {{"starts_over_little_noise", {}, 3}};
  const auto all = judge(scenario, grid, {});
  REQUIRE(all.ok());
  CHECK(named(*all, "starts_over_little_noise")->value.value == Approx(2.5));
  CHECK(named(*all, "starts_over_little_noise")->reached());
  CHECK(named(*all, "over_little_noise")->value.value == Approx(1.25));
}

TEST_CASE("What it is worth that trainers say how long they will train is counted against their silence") {
  auto completions = kLimits;
  completions.emplace_back("unannounced", 110);
  Grid grid = grid_of(completions);
  for (Figures& figures : grid.figures[grid.column("unannounced")]) at(figures, Figure::kP99Slowdown) = 7;
  const auto all = judge({}, grid, {});
  REQUIRE(all.ok());
  CHECK(named(*all, "unannounced_over_sluice")->value.value == Approx(1.1));
  CHECK(named(*all, "unannounced_p99_slowdown")->value.value == 7);
  const auto without = judge({}, grid_of(kLimits), {});
  REQUIRE(without.ok());
  CHECK(named(*without, "unannounced_over_sluice") == nullptr);
}

TEST_CASE("Without the run that never learns, only the cost of wrong rates is told") {
  auto completions = kLimits;
  completions.emplace_back("true-rates", 80);
  const auto all = judge({}, grid_of(completions), {});
  REQUIRE(all.ok());
  CHECK(named(*all, "over_true_rates")->value.value == Approx(1.25));
  CHECK(named(*all, "no_feedback_over_true_rates") == nullptr);
}

TEST_CASE("The time to nine tenths of full speed is the slowest job's, its whole run if it never gets there") {
  struct Row {
    const char* situation;
    std::vector<JobRecord> jobs;
    double want;
  };
  const Row rows[] = {
      {"at once", {{.start_seconds = 50, .fast_seconds = 50, .finish_seconds = 500}}, 0},
      {"counted from the start, not from the beginning of time",
       {{.start_seconds = 50, .fast_seconds = 110, .finish_seconds = 500}},
       60},
      {"the slowest of two",
       {{.start_seconds = 0, .fast_seconds = 40, .finish_seconds = 500},
        {.start_seconds = 100, .fast_seconds = 170, .finish_seconds = 500}},
       70},
      {"never", {{.start_seconds = 100, .fast_seconds = -1, .finish_seconds = 900}}, 800},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Grid grid = grid_of(kLimits);
    RunRecord record;
    record.jobs = row.jobs;
    grid.runs.assign(grid.policies.size(), std::vector<RunRecord>(2, record));
    Scenario scenario;
    scenario.goals = {{"seconds_to_90", {}, 75}};
    const auto all = judge(scenario, grid, {});
    REQUIRE(all.ok());
    CHECK(named(*all, "seconds_to_90")->value.value == Approx(row.want));
    CHECK(named(*all, "seconds_to_90")->reached() == (row.want <= 75));
  }
}

TEST_CASE("A scenario is run with the policies that its figures need, and no others") {
  const auto has = [](const Scenario& scenario, const std::string& policy) {
    const auto names = judged_policies(scenario);
    return std::count(names.begin(), names.end(), policy);
  };
  Scenario plain, wrong, noisy, alone, silent;
  silent.cluster.physics.remaining_time_known = false;
  wrong.cluster.physics.busy_cpu_error = 0.8;
  noisy.cluster.physics.metrics_noise = 0.3;
  alone.baselines = false;
  for (const Scenario* scenario : {&plain, &wrong, &noisy, &alone})
    for (const char* needed : {"static", "sluice", "perfect", "no-stall"}) CHECK(has(*scenario, needed) == 1);
  CHECK(judged_policies(plain)[0] == "static");  // what the others are compared with
  CHECK(has(plain, "hpa-everywhere") == 1);
  CHECK(has(plain, "knee-proportional") == 0);  // no figure of it
  CHECK(has(plain, "true-rates") == 0);
  CHECK(has(wrong, "true-rates") == 1);
  CHECK(has(plain, "little-noise") == 0);
  CHECK(has(noisy, "little-noise") == 1);
  CHECK(has(plain, "unannounced") == 1);
  CHECK(has(silent, "unannounced") == 0);
  CHECK(has(wrong, "no-feedback") == 1);
  CHECK(has(alone, "hpa") == 0);
  CHECK(has(alone, "burst") == 0);
}

TEST_CASE("A grid without the limits cannot be judged") {
  for (const char* missing : {"static", "sluice", "perfect", "no-stall"}) {
    Completions completions;
    for (const auto& limit : kLimits)
      if (limit.first != missing) completions.push_back(limit);
    CAPTURE(missing);
    CHECK_FALSE(judge({}, grid_of(completions), {}).ok());
  }
}

TEST_CASE("A goal or a figure that does not exist is told by the scenario's name; an unknown reference is let be") {
  Scenario scenario;
  scenario.name = "P9";
  scenario.reference = {{"speed_of_light", 3e8}, {"jct_gain", 2.5}};
  const auto good = judge(scenario, grid_of(kLimits), {});
  REQUIRE(good.ok());
  CHECK(named(*good, "jct_gain")->reference == 2.5);
  scenario.goals = {{"speed", 1.0, {}}};
  const auto bad = judge(scenario, grid_of(kLimits), {});
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().message() == "P9: there is no figure \"speed\" to have a goal");
}

TEST_CASE("A goal is reached at its bound, and missed beyond it, on both sides") {
  Judged judged;
  judged.value.value = 1.2;
  CHECK(judged.reached());
  CHECK_FALSE(judged.has_goal());
  judged.at_least = 1.2;
  CHECK(judged.reached());
  judged.at_least = 1.21;
  CHECK_FALSE(judged.reached());
  judged.at_least.reset();
  judged.at_most = 1.2;
  CHECK(judged.reached());
  judged.at_most = 1.19;
  CHECK_FALSE(judged.reached());
}

TEST_CASE("Lower bounds are found for every seed, below every run of it") {
  Scenario scenario;
  scenario.cluster = testing::small_cluster();
  for (int i = 0; i < 8; ++i) scenario.jobs.push_back(testing::job(50 * i, 1 << (i % 4), 400, 1 + 2 * i));
  GridOptions options;
  options.policies = {"static", "sluice"};
  options.seeds = 2;
  const auto grid = run_grid(scenario, {}, options);
  REQUIRE(grid.ok());
  const auto bounds = lower_bounds_of(scenario, *grid, 2);
  REQUIRE(bounds.ok());
  REQUIRE(bounds->size() == 2);
  for (int policy = 0; policy < 2; ++policy) {
    const auto completion = grid->values(policy, Figure::kMeanJct);
    for (std::size_t seed = 0; seed < 2; ++seed) CHECK((*bounds)[seed] <= completion[seed]);
  }
}

}  // namespace
}  // namespace sluice::simulator
