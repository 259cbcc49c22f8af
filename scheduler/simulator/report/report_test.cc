#include "scheduler/simulator/report/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/simulator/command/catalogue.h"
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

TEST_CASE("The bound says the most that any policy can gain, or that there is nothing to gain") {
  const Cluster cluster = testing::small_cluster();
  const Bound some = bound_of({job(0, 1, 100, 9), job(0, 1, 100, 0.5)}, cluster);
  CHECK(some.mean_slowdown == Approx((3 + 1) / 2.0).epsilon(0.01));
  CHECK(some.best_single_job == 3);
  CHECK(some.effective_cores == Approx(3 + 0.77 * 64 / 16));
  CHECK_THAT(bound_sentence(some), Catch::Contains("no policy gains more than 2.00x"));
  CHECK_THAT(bound_sentence(bound_of({job(0, 1, 100, 0.5)}, cluster)), Catch::Contains("nothing to gain"));
}

TEST_CASE("Reports name both utilisations, the bound and every policy, as text and as JSON") {
  const Verdict verdict = judged_small(small_scenario());
  const std::string text = text_report(verdict.scenario, verdict.grid);
  const std::string json_text = json_report(verdict.scenario, verdict.grid);
  for (const std::string& report : {text, json_text})
    for (const char* want : {"utilisation, allocated", "utilisation, wall", "Bound:", "burst", "no-stall", "JCT gain",
                             "p99 JCT", "jobs harmed", "changes per job-hour"})
      CHECK_THAT(report, Catch::Contains(want));
  const auto json = nlohmann::json::parse(json_text);
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

TEST_CASE("A figure is shown in its unit, with as many digits as help") {
  struct Row {
    Figure figure;
    double value;
    const char* want;
  };
  const Row rows[] = {
      {Figure::kAllocatedUtilisation, 0.5678, "56.8 %"},
      {Figure::kHarmed, 0, "0.0 %"},
      {Figure::kMeanJct, 599.4, "599 s"},
      {Figure::kMeanJct, 600, "0.17 h"},
      {Figure::kMakespan, 36000, "10.00 h"},
      {Figure::kCoreHours, 8273.4, "8273"},
      {Figure::kCoreHours, 0.25, "0.2"},
      {Figure::kCost, 12.6, "$13"},
      {Figure::kP99Slowdown, 13.314, "13.31"},
      {Figure::kWorkersStarted, 0, "0"},
      {Figure::kWorkersStarted, 7, "7"},
      {Figure::kWorkersStarted, 2143.4, "2143"},
      {Figure::kChurn, 0.512, "0.51"},
  };
  for (const Row& row : rows) {
    CAPTURE(text_of(row.figure).title, row.value);
    CHECK(shown(row.figure, row.value) == row.want);
  }
}

TEST_CASE("The JSON has the time line of every job of seed 1, if it was recorded") {
  const Verdict verdict = judged_small(small_scenario());
  auto json = nlohmann::json::parse(json_report(verdict.scenario, verdict.grid));
  CHECK(json["cluster"]["gpus"] == verdict.scenario.cluster.gpus());
  for (int policy = 0; policy < 5; ++policy) {
    const auto& line = json["policies"][policy]["time_line"];
    CHECK_THAT(line["figures"][0].get<std::string>(), Catch::Contains("utilisation, allocated "));
    REQUIRE(line["jobs"].size() == 8);
    for (int i = 0; i < 8; ++i) {
      const JobRecord& job = verdict.grid.runs[policy][0].jobs[i];
      const auto& shown = line["jobs"][i];
      CHECK(shown["gpus"] == verdict.grid.workloads[0][i].gpus);
      CHECK(shown["finish_seconds"].get<double>() == Approx(job.finish_seconds).margin(0.001));
      REQUIRE(shown["steps"].size() == job.timeline.size());
      CHECK(shown["steps"][0][0].get<double>() == Approx(job.timeline[0].at_seconds).margin(0.001));
      CHECK(shown["steps"][0][4].get<double>() == Approx(job.timeline[0].wanted_cores).margin(0.001));
    }
  }
  Grid grid = verdict.grid;
  grid.runs[0][0].jobs[3].timeline[0].running = false;
  for (auto& job : grid.runs[1][0].jobs) job.timeline.clear();
  json = nlohmann::json::parse(json_report(verdict.scenario, grid));
  CHECK(json["policies"][0]["time_line"]["jobs"][3]["steps"][0].size() == 1);  // it waits for a node
  CHECK_FALSE(json["policies"][1].contains("time_line"));
}

TEST_CASE("A ratio of nothing to nothing is no number, in the table and in the JSON") {
  Scenario scenario = small_scenario();
  for (JobSpec& spec : scenario.jobs) spec.arrival_seconds *= 1e-3;
  scenario.cluster.physics.trainer_startup_seconds = 500;  // no job computes before the last has arrived
  const Verdict verdict = judged_small(scenario);
  const std::string text = text_report(verdict.scenario, verdict.grid);
  CHECK_THAT(text, Catch::Contains("- [-, -]") && !Catch::Contains("nan"));
  const auto json = nlohmann::json::parse(json_report(verdict.scenario, verdict.grid));
  CHECK(json["policies"][1]["ratio_to_first"]["wall_utilisation"]["value"].is_null());
  CHECK(json["policies"][1]["ratio_to_first"]["mean_completion"]["value"].is_number());
}

TEST_CASE("The JSON of a run has every figure of every policy by seed, and the bound") {
  const Verdict verdict = judged_small(small_scenario());
  const auto json = nlohmann::json::parse(json_report(verdict.scenario, verdict.grid));
  CHECK(json["seeds"] == 2);
  CHECK(json["jobs_per_seed"] == 8);
  CHECK(json["bound"]["gain_at_most"].get<double>() >= json["bound"]["gain_at_most_while_full"].get<double>());
  for (std::size_t policy = 0; policy < json["policies"].size(); ++policy) {
    const auto& entry = json["policies"][policy];
    CHECK(entry["policy"] == verdict.grid.policies[policy]);
    for (std::size_t i = 0; i < kFigures; ++i) {
      const auto figure = static_cast<Figure>(i);
      const auto& shown = entry[std::string(text_of(figure).key)];
      CAPTURE(text_of(figure).key);
      REQUIRE(shown["by_seed"].size() == 2);
      CHECK(shown["by_seed"][1] == at(verdict.grid.figures[policy][1], figure));
      CHECK(shown["value"].get<double>() ==
            Approx((shown["by_seed"][0].get<double>() + shown["by_seed"][1].get<double>()) / 2));
    }
  }
}

TEST_CASE("The speed of the simulator is told for each policy, with and without what the policy took") {
  Grid grid = judged_small(small_scenario()).grid;
  for (auto& runs : grid.runs) {
    for (RunRecord& run : runs) {
      run.events = 50000;
      run.decisions = 20000;
      run.cpu_seconds = 1;
      run.decide_seconds = 0.75;
    }
  }
  const std::string text = text_report(small_scenario(), grid);
  CHECK_THAT(text, Catch::Contains("events  per CPU-second  with the policy  decisions     each"));
  CHECK_THAT(text, Catch::Contains("100000          200000            50000      40000  37.5 us"));
}

}  // namespace
}  // namespace sluice::simulator
