#include "scheduler/simulator/report.h"

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
  CHECK(nlohmann::json::parse(verdicts_json({verdict}))["scenarios"][0]["figures"].size() > 5);
  scenario.goals = {{"speed", 1.0, {}}};
  CHECK_FALSE(judge(scenario, verdict.grid, verdict.lower_bounds).ok());
}

}  // namespace
}  // namespace sluice::simulator
