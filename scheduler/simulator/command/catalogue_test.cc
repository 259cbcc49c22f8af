// Which scenarios make up the report, and how its tables read.
#include "scheduler/simulator/command/catalogue.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::simulator {
namespace {

using sluice::testing::TemporaryDirectory;

TEST_CASE("The scenarios of a folder are a capital letter and a number, by name; everything else is left alone") {
  const TemporaryDirectory folder;
  for (const char* name : {"P2.yaml", "P10.yaml", "V1.yaml", "profiles.yaml", "cluster.yaml", "demo-c.yaml", "P.yaml",
                           "p1.yaml", "P1-old.yaml", "P3.yml", "S1.yaml.bak"})
    folder.file(name, "");
  const auto files = scenario_files(folder.path.string());
  REQUIRE(files.ok());
  std::vector<std::string> names;
  for (const std::string& file : *files) names.push_back(std::filesystem::path(file).filename().string());
  CHECK(names == std::vector<std::string>{"P10.yaml", "P2.yaml", "V1.yaml"});
}

TEST_CASE("A folder without scenarios, or no folder, is told by name") {
  const TemporaryDirectory folder;
  CHECK_THAT(scenario_files(folder.path.string()).error().message(), Catch::StartsWith(folder.path.string()));
  CHECK_THAT(scenario_files("/nowhere").error().message(), Catch::Contains("/nowhere"));
  CHECK(scenario_files("/nowhere").error().code() == ErrorCode::kNotFound);
}

TEST_CASE("The catalogue holds every goal of the simulator, each with its threshold") {
  struct Row {
    const char* scenario;
    const char* figure;
    double threshold;
  };
  const Row rows[] = {
      {"P1", "jct_gain", 2.3},         {"P1", "allocated_gain", 2.0},         {"P1", "over_best_peer", 1.15},
      {"P2", "over_best_peer", 1.2},   {"P3", "over_best_peer", 1.35},        {"P4", "over_best_peer", 1.35},
      {"P7", "over_best_peer", 0.99},  {"P8", "over_best_peer", 1.03},        {"P1", "over_lower_bound", 1.1},
      {"P4", "over_lower_bound", 1.6}, {"P6", "share_of_perfect", .97},       {"P5", "harmed", 0.01},
      {"V1", "share_of_perfect", .85}, {"V3", "share_of_perfect", .85},       {"V1", "harmed", 0.05},
      {"V3", "harmed", 0.05},          {"W1", "over_true_rates", 1.08},       {"W3", "over_true_rates", 1.08},
      {"S1", "seconds_to_90", 75},     {"N1", "starts_over_little_noise", 3}, {"N3", "starts_over_little_noise", 3},
      {"N1", "share_of_perfect", .97}, {"N3", "share_of_perfect", .97},       {"I1", "over_best_peer", 1},
      {"I1", "harmed", 0.01},          {"I2", "over_best_peer", 1},           {"T1", "over_best_peer", 1},
      {"T1", "harmed", 0.05},
  };
  for (const Row& row : rows) {
    CAPTURE(row.scenario, row.figure);
    const std::string path = std::string("scheduler/simulator/catalogue/") + row.scenario + ".yaml";
    const auto text = read_file(path);
    REQUIRE(text.ok());
    const auto scenario = parse_scenario(*text, path);
    REQUIRE(scenario.ok());
    double found = -1;
    for (const Goal& goal : scenario->goals)
      if (goal.figure == row.figure) found = goal.at_least ? *goal.at_least : *goal.at_most;
    CHECK(found == row.threshold);
  }
}

// A verdict with one figure that has a goal.
Verdict verdict(const std::string& name, double gain, std::optional<double> prototype, bool reached) {
  Verdict verdict;
  verdict.scenario.name = name;
  Judged judged;
  judged.figure = "jct_gain";
  judged.value = {gain, gain - 0.1, gain + 0.1};
  judged.at_least = reached ? gain : gain + 1;
  judged.reference = prototype;
  if (prototype) verdict.scenario.reference = {{"jct_gain", *prototype}};
  verdict.judged = {judged};
  return verdict;
}

TEST_CASE("The summary's means are over the prototype's scenarios, its goals over all") {
  const std::string text =
      summary_table({verdict("P1", 2, 2.5, true), verdict("P2", 8, 2.5, false), verdict("V1", 100, {}, true)});
  CHECK_THAT(text, Catch::Contains("geometric mean over 2 scenarios"));
  CHECK_THAT(text, Catch::Contains("jct_gain") && Catch::Contains("4.00") && Catch::Contains("2.50"));
  CHECK_THAT(text, Catch::Contains("2 of 3 goals reached"));
}

TEST_CASE("A figure that some scenario has not run has no mean, and one without the prototype's no comparison") {
  const std::vector<Verdict> verdicts = {verdict("P1", 2, 2.5, true), verdict("P2", 8, 2.5, true)};
  CHECK_THAT(summary_table(verdicts), !Catch::Contains("over_best_peer") && !Catch::Contains("1.00"));
  std::vector<Verdict> more = verdicts;
  for (Verdict& each : more) {
    Judged peer;
    peer.figure = "over_best_peer";
    peer.value.value = 1.5;
    each.judged.push_back(peer);
  }
  more[0].judged.back().reference = 1.3;
  const std::string text = summary_table(more);
  CHECK_THAT(text, Catch::Contains("over_best_peer") && Catch::Contains("1.50\n"));
  more.pop_back();
  CHECK_THAT(summary_table(more), Catch::Contains("1.50") && Catch::Contains("1.30"));
  CHECK(summary_table({}) == "0 of 0 goals reached\n");
}

TEST_CASE("One missed goal anywhere makes the report fail") {
  CHECK(all_reached({}));
  CHECK(all_reached({verdict("P1", 2, {}, true), verdict("P2", 2, {}, true)}));
  CHECK_FALSE(all_reached({verdict("P1", 2, {}, true), verdict("P2", 2, {}, false)}));
}

// Sluice takes 500 s a job with 30 workers started for ten jobs, 400 s with perfect information, and static 1000 s.
Grid grid_of_sluice() {
  Grid grid;
  grid.policies = {"static", "sluice", "perfect"};
  grid.workloads = {Workload(10)};
  for (const double seconds : {1000.0, 500.0, 400.0}) {
    Figures figures{};
    at(figures, Figure::kMeanJct) = seconds;
    at(figures, Figure::kWorkersStarted) = 30;
    at(figures, Figure::kAllocatedUtilisation) = 0.9;
    grid.figures.push_back({figures});
  }
  return grid;
}

TEST_CASE("Every scenario has two rows for Sluice: as carried out, and with perfect information") {
  Verdict verdict;
  verdict.grid = grid_of_sluice();
  const std::string table = verdict_table(verdict);
  CHECK_THAT(table, Catch::Matches("(.|\n)*as carried out +500 s +2.00 +90.0 % +0.0 % +3.0\n(.|\n)*"));
  CHECK_THAT(table, Catch::Matches("(.|\n)*with perfect information +400 s +2.50 +90.0 % +0.0 % +3.0\n(.|\n)*"));
}

TEST_CASE("The summary in JSON has a line for each policy and figure, and no value of a single seed") {
  Verdict verdict;
  verdict.scenario.name = "P1";
  verdict.scenario.summary = "some \"jobs\"";
  verdict.grid = grid_of_sluice();
  verdict.lower_bounds = {1.0 / 3};
  verdict.judged.resize(2);
  const std::string text = verdicts_json({verdict, verdict}, {"a day", "a machine", "versions"});
  const auto json = nlohmann::json::parse(text);
  CHECK(json["scenarios"].size() == 2);
  CHECK(json["scenarios"][1]["summary"] == "some \"jobs\"");
  CHECK(json["scenarios"][0]["lower_bound_seconds"] == 0.33333);
  CHECK(json["scenarios"][0]["policies"][1]["mean_completion_seconds"] == 500);
  CHECK(std::count(text.begin(), text.end(), '\n') <= 2 + 2 * (3 + 2 + 5));
}

TEST_CASE("A line of the report has value, interval, the prototype's value, the difference, goal and verdict") {
  struct Row {
    const char* situation;
    Judged judged;
    std::vector<const char*> want;
  };
  const auto figure = [](const char* name, double value) {
    Judged judged;
    judged.figure = name;
    judged.value = {value, value - 0.25, value + 0.25};
    return judged;
  };
  Row rows[] = {
      {"a goal reached", figure("jct_gain", 2.5), {"2.50", "[2.25, 2.75]", ">= 2.30", "ok"}},
      {"a goal missed", figure("over_best_peer", 1.1), {"over_best_peer (hpa)", "1.10", ">= 1.15", "falls short"}},
      {"at most", figure("over_lower_bound", 1.05), {"<= 1.10", "ok"}},
      {"a share in four digits", figure("harmed", 0.0125), {"0.0125", "<= 0.01", "falls short"}},
      {"beside the prototype", figure("wall_gain", 1.2), {"1.20", "1.50", "-20 %"}},
      {"better than the prototype", figure("p99_slowdown", 3), {"3.00", "2.00", "+50 %"}},
  };
  rows[0].judged.at_least = 2.3;
  rows[1].judged.at_least = 1.15;
  rows[1].judged.remark = "hpa";
  rows[2].judged.at_most = 1.1;
  rows[3].judged.at_most = 0.01;
  rows[4].judged.reference = 1.5;
  rows[5].judged.reference = 2;
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Verdict verdict;
    verdict.scenario.name = "P1";
    verdict.scenario.summary = "some jobs";
    verdict.grid = grid_of_sluice();
    verdict.judged = {row.judged};
    const std::string table = verdict_table(verdict);
    CHECK_THAT(table, Catch::StartsWith("P1: some jobs\nBound: "));
    for (const char* want : row.want) CHECK_THAT(table, Catch::Contains(want));
  }
}

TEST_CASE("The JSON holds what the tables hold") {
  Scenario scenario;
  scenario.name = "tiny";
  scenario.cluster = testing::small_cluster();
  scenario.jobs = {testing::job(0, 4, 300, 9), testing::job(10, 8, 200, 2)};
  scenario.goals = {{"jct_gain", 1.0, {}}, {"harmed", {}, 0.01}};
  scenario.reference = {{"jct_gain", 1.5}};
  GridOptions options;
  options.policies = judged_policies(scenario);
  options.seeds = 2;
  const auto verdict = run_verdict(scenario, {}, options);
  REQUIRE(verdict.ok());
  const auto json = nlohmann::json::parse(verdicts_json({*verdict}, {"a day", "a machine", "versions"}));
  CHECK(json["date"] == "a day");
  const auto& entry = json["scenarios"][0];
  CHECK(entry["scenario"] == "tiny");
  CHECK(entry["seeds"] == 2);
  CHECK(entry["lower_bound_seconds"].get<double>() > 0);
  CHECK(entry["policies"].size() == options.policies.size());
  bool gain = false, peer = false;
  for (const auto& figure : entry["figures"]) {
    CHECK(figure["low"].get<double>() <= figure["value"].get<double>() + 1e-9);
    CHECK(figure["value"].get<double>() <= figure["high"].get<double>() + 1e-9);
    if (figure["name"] == "over_best_peer") peer = !figure["peer"].get<std::string>().empty();
    if (figure["name"] != "jct_gain") continue;
    gain = true;
    CHECK(figure["goal"] == ">= 1.00");
    CHECK(figure["verdict"] == "ok");
    CHECK(figure["prototype"] == 1.5);
  }
  CHECK(gain);
  CHECK(peer);
}

}  // namespace
}  // namespace sluice::simulator
