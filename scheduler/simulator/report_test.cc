#include "scheduler/simulator/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/simulator/catalogue.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;

Scenario small_scenario() {
  Scenario scenario;
  scenario.name = "small <one>";
  scenario.summary = "a few jobs";
  scenario.cluster = testing::small_cluster();
  for (int i = 0; i < 8; ++i) scenario.jobs.push_back(job(30 * i, 1 + i % 4, 300 + 50 * i, 1 + 2 * i));
  return scenario;
}

Verdict judged_small(Scenario scenario) {
  GridOptions options;
  options.policies = {"static", "burst", "sluice", "perfect", "no-stall"};
  options.seeds = 2;
  options.timeline = true;
  auto verdict = run_verdict(scenario, {}, options);
  REQUIRE(verdict.ok());
  return std::move(verdict).value();
}

TEST_CASE("The bound says what nobody can gain, or that there is nothing to gain") {
  const Cluster cluster = testing::small_cluster();
  const Bound some = bound_of({job(0, 1, 100, 9), job(0, 1, 100, 0.5)}, cluster);
  CHECK(some.mean_slowdown == Approx((3 + 1) / 2.0).epsilon(0.01));
  CHECK(some.best_single_job == 3);
  CHECK(some.effective_cores == Approx(3 + 0.77 * 64 / 16));
  CHECK_THAT(bound_sentence(some), Catch::Contains("no policy gains more than 2.00x"));
  CHECK_THAT(bound_sentence(bound_of({job(0, 1, 100, 0.5)}, cluster)), Catch::Contains("nothing to gain"));
}

TEST_CASE("Figures are what they say") {
  const Cluster cluster = testing::small_cluster();
  const Workload workload = {job(0, 8, 3600, 9), job(0, 8, 3600, 0.5)};
  RunRecord run;
  run.makespan_seconds = 7200;
  run.jobs.resize(2);
  run.jobs[0] = {.start_seconds = 0, .finish_seconds = 7200, .allocated_gpu_seconds = 8 * 7200, .core_seconds = 7200};
  run.jobs[1] = {.start_seconds = 0, .finish_seconds = 3600, .allocated_gpu_seconds = 8 * 3600, .core_seconds = 0};
  RunRecord before = run;
  before.jobs[0].finish_seconds = 3600;
  const Figures figures = figures_of(run, before, workload, cluster);
  CHECK(at(figures, Figure::kAllocatedUtilisation) == Approx(2.0 / 3));
  CHECK(at(figures, Figure::kWallUtilisation) == Approx(0.5));
  CHECK(at(figures, Figure::kMeanJct) == 5400);
  CHECK(at(figures, Figure::kCoreHours) == 2);
  CHECK(at(figures, Figure::kCost) == Approx(24 * 2.48 + 2 * 0.05));
  CHECK(at(figures, Figure::kWorstAgainstStatic) == 2);
  CHECK(at(figures, Figure::kHarmed) == 0.5);
}

TEST_CASE("Reports name both utilisations, the bound and every policy, on paper, in JSON and in HTML") {
  const Verdict verdict = judged_small(small_scenario());
  const std::string text = text_report(verdict.scenario, verdict.grid);
  const std::string html = html_report(verdict.scenario, verdict.grid);
  for (const std::string& report : {text, html})
    for (const char* want : {"utilisation, allocated", "utilisation, wall", "Bound:", "burst", "no-stall", "JCT gain"})
      CHECK_THAT(report, Catch::Contains(want));
  CHECK_THAT(html, Catch::Contains("small &lt;one&gt;"));
  for (const char* want : {"What it brings", "p99 JCT", "jobs harmed", "changes per job-hour"})
    CHECK_THAT(html, Catch::Contains(want));
  CHECK_THAT(html, Catch::Contains("<svg") && Catch::Contains("% of full speed"));
  CHECK_THAT(html, !Catch::Contains("http") && !Catch::Contains("<script"));
  const auto json = nlohmann::json::parse(json_report(verdict.scenario, verdict.grid));
  CHECK(json["policies"].size() == 5);
  CHECK(json["policies"][0]["ratio_to_first"]["mean_completion"]["value"] == Approx(1));
  CHECK(json["policies"][2]["allocated_utilisation"]["by_seed"].size() == 2);
}

TEST_CASE("Goals are ok or fall short, and an unknown figure is an error") {
  Scenario scenario = small_scenario();
  scenario.goals = {{"jct_gain", 1.0, {}}, {"over_lower_bound", {}, 1.0001}};
  scenario.reference = {{"jct_gain", 1.5}};
  const Verdict verdict = judged_small(scenario);
  const std::string table = verdict_table(verdict);
  CHECK_THAT(table, Catch::Contains("ok") && Catch::Contains("falls short") && Catch::Contains("1.50"));
  CHECK_FALSE(all_reached({verdict}));
  CHECK_THAT(summary_table({verdict}), Catch::Contains("1 of 2 goals reached"));
  CHECK_THAT(oracle_table(verdict), Catch::Contains("lower bound"));
  const auto json = nlohmann::json::parse(verdicts_json({verdict}, provenance_now()));
  CHECK(json["scenarios"][0]["figures"].size() > 5);
  CHECK(json["date"].get<std::string>().ends_with("+00:00"));
  CHECK_THAT(json["versions"].get<std::string>(), Catch::Contains("Sluice 0.") && Catch::Contains("kernel"));
  scenario.goals = {{"speed", 1.0, {}}};
  CHECK_FALSE(judge(scenario, verdict.grid, verdict.lower_bounds).ok());
}

TEST_CASE("A value and its interval are in one unit, and within what is possible") {
  Grid grid;
  grid.policies = {"static"};
  Figures one{}, other{};
  one.fill(1), other.fill(1);
  at(one, Figure::kMeanJct) = 700, at(other, Figure::kMeanJct) = 900;
  at(one, Figure::kAllocatedUtilisation) = 0.8, at(other, Figure::kAllocatedUtilisation) = 0.9;
  grid.figures = {{one, other}};
  const auto row = policy_table(grid).rows()[1];
  CHECK(row[1] == "85.0 % [21.5 %, 100.0 %]");
  CHECK(row[3] == "0.22 h [0.00 h, 0.58 h]");
}

// A grid of made-up completion times: every policy's mean, the same for both seeds.
Grid grid_of(const std::vector<std::pair<std::string, double>>& completions) {
  Grid grid;
  for (const auto& [policy, seconds] : completions) {
    Figures figures{};
    figures.fill(1);
    at(figures, Figure::kMeanJct) = seconds;
    grid.policies.push_back(policy);
    grid.figures.push_back({figures, figures});
  }
  return grid;
}

TEST_CASE("The peer to beat is whichever is the best here, and every peer is told") {
  const std::vector<std::pair<std::string, double>> limits = {
      {"static", 300}, {"sluice", 100}, {"perfect", 98}, {"no-stall", 90}};
  struct Row {
    const char* situation;
    std::vector<std::pair<std::string, double>> peers;
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
    auto completions = limits;
    completions.insert(completions.end(), row.peers.begin(), row.peers.end());
    const auto all = judge({}, grid_of(completions), {});
    REQUIRE(all.ok());
    const auto named = [&](const std::string& figure) {
      return std::find_if(all->begin(), all->end(), [&](const Judged& j) { return j.figure == figure; });
    };
    REQUIRE(named("over_best_peer") != all->end());
    CHECK(named("over_best_peer")->remark == row.best);
    CHECK(named("over_best_peer")->value.value == Approx(row.ratio));
    for (const auto& [peer, seconds] : row.peers) {
      if (peer == "knee-proportional") continue;
      REQUIRE(named("over_" + peer) != all->end());
      CHECK(named("over_" + peer)->value.value == Approx(seconds / 100));
    }
    CHECK(named("over_knee-proportional") == all->end());
    CHECK(named("share_of_perfect")->value.value == Approx(0.98));
  }
}

TEST_CASE("A grid without the limits cannot be judged") {
  for (const char* missing : {"static", "sluice", "perfect", "no-stall"}) {
    std::vector<std::pair<std::string, double>> completions;
    for (const char* policy : {"static", "sluice", "perfect", "no-stall"})
      if (std::string(policy) != missing) completions.emplace_back(policy, 100);
    CAPTURE(missing);
    CHECK_FALSE(judge({}, grid_of(completions), {}).ok());
  }
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

}  // namespace
}  // namespace sluice::simulator
