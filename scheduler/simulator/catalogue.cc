#include "scheduler/simulator/catalogue.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "scheduler/simulator/report.h"
#include "scheduler/simulator/table.h"

namespace sluice::simulator {
namespace {

std::string goal_text(const Judged& judged) {
  if (judged.at_least) return ">= " + fixed(*judged.at_least, 2);
  if (judged.at_most) return "<= " + fixed(*judged.at_most, 2);
  return "";
}

std::string verdict_text(const Judged& judged) {
  if (!judged.has_goal()) return "";
  return judged.reached() ? "ok" : "falls short";
}

std::string difference_text(const Judged& judged) {
  if (!judged.reference || *judged.reference == 0) return "";
  const double percent = 100 * (judged.value.value / *judged.reference - 1);
  return (percent >= 0 ? "+" : "") + fixed(percent, 0) + " %";
}

bool is_scenario_name(const std::string& name) {
  return name.size() > 1 && name[0] >= 'A' && name[0] <= 'Z' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

nlohmann::ordered_json json_of(const Judged& judged) {
  nlohmann::ordered_json entry = {
      {"name", judged.figure}, {"value", judged.value.value}, {"low", judged.value.low}, {"high", judged.value.high}};
  if (!judged.remark.empty()) entry["peer"] = judged.remark;
  if (judged.reference) entry["prototype"] = *judged.reference;
  if (judged.has_goal()) {
    entry["goal"] = goal_text(judged);
    entry["verdict"] = verdict_text(judged);
  }
  return entry;
}

}  // namespace

Result<std::vector<std::string>> scenario_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".yaml" && is_scenario_name(entry.path().stem().string()))
      files.push_back(entry.path().string());
  }
  if (files.empty()) return not_found(folder + ": no scenario, as P1.yaml");
  std::sort(files.begin(), files.end());
  return files;
}

Result<Verdict> run_verdict(const Scenario& scenario, const Sources& sources, const GridOptions& options) {
  Verdict verdict;
  verdict.scenario = scenario;
  SLUICE_TRY(verdict.grid, run_grid(scenario, sources, options));
  SLUICE_TRY(verdict.lower_bounds, lower_bounds_of(scenario, verdict.grid, options.threads));
  SLUICE_TRY(verdict.judged, judge(scenario, verdict.grid, verdict.lower_bounds));
  return verdict;
}

std::string verdict_table(const Verdict& verdict) {
  Table table({"figure", "value", "95 % interval", "prototype", "difference", "goal", "verdict"});
  for (const Judged& judged : verdict.judged)
    table.add({judged.figure + (judged.remark.empty() ? "" : " (" + judged.remark + ")"),
               fixed(judged.value.value, judged.figure == "harmed" ? 4 : 2),
               "[" + fixed(judged.value.low, 2) + ", " + fixed(judged.value.high, 2) + "]",
               judged.reference ? fixed(*judged.reference, 2) : "", difference_text(judged), goal_text(judged),
               verdict_text(judged)});
  return verdict.scenario.name + ": " + verdict.scenario.summary + "\n" + bound_sentence(verdict.grid.bound) + "\n" +
         table.text() + "\n";
}

std::string summary_table(const std::vector<Verdict>& all) {
  std::vector<const Verdict*> verdicts;
  for (const Verdict& verdict : all)
    if (verdict.scenario.reference.contains("jct_gain")) verdicts.push_back(&verdict);
  Table table({"geometric mean over " + std::to_string(verdicts.size()) + " scenarios", "value", "prototype"});
  for (const char* figure : {"jct_gain", "allocated_gain", "wall_gain", "over_best_peer", "share_of_perfect",
                             "over_lower_bound", "no_stall_gain"}) {
    double ours = 0, theirs = 0;
    std::size_t found = 0;
    bool known = true;
    for (const Verdict* verdict : verdicts) {
      for (const Judged& judged : verdict->judged) {
        if (judged.figure != figure) continue;
        ++found;
        ours += std::log(judged.value.value);
        known = known && judged.reference;
        theirs += std::log(judged.reference.value_or(1));
      }
    }
    if (found < verdicts.size()) continue;  // not run, so there is no mean of it
    const auto count = static_cast<double>(found);
    table.add({figure, fixed(std::exp(ours / count), 2), known ? fixed(std::exp(theirs / count), 2) : ""});
  }
  int goals = 0, reached = 0;
  for (const Verdict& verdict : all) {
    for (const Judged& judged : verdict.judged) {
      goals += judged.has_goal() ? 1 : 0;
      reached += judged.has_goal() && judged.reached() ? 1 : 0;
    }
  }
  return (verdicts.empty() ? "" : table.text() + "\n") + std::to_string(reached) + " of " + std::to_string(goals) +
         " goals reached\n";
}

std::string verdicts_json(const std::vector<Verdict>& verdicts, const Provenance& provenance) {
  nlohmann::ordered_json root = {
      {"date", provenance.date}, {"machine", provenance.machine}, {"versions", provenance.versions}};
  for (const Verdict& verdict : verdicts) {
    nlohmann::ordered_json entry = nlohmann::ordered_json::parse(json_report(verdict.scenario, verdict.grid));
    entry["lower_bound_seconds"] = verdict.lower_bounds;
    for (const Judged& judged : verdict.judged) entry["figures"].push_back(json_of(judged));
    root["scenarios"].push_back(std::move(entry));
  }
  return root.dump(1) + "\n";
}

bool all_reached(const std::vector<Verdict>& verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return std::all_of(verdict.judged.begin(), verdict.judged.end(), [](const Judged& j) { return j.reached(); });
  });
}

std::string oracle_table(const Verdict& verdict) {
  const Grid& grid = verdict.grid;
  const int perfect = grid.column("perfect");
  Table table({"policy", "mean JCT", "over the lower bound", "share of perfect information", "utilisation, allocated"});
  for (int policy = 0; policy < static_cast<int>(grid.policies.size()); ++policy) {
    const std::vector<double> completion = grid.values(policy, Figure::kMeanJct);
    const Interval over = ratio_interval(completion, verdict.lower_bounds);
    const Interval share = ratio_interval(grid.values(perfect, Figure::kMeanJct), completion);
    table.add({grid.policies[policy], shown(Figure::kMeanJct, mean(completion)),
               fixed(over.value, 3) + " [" + fixed(over.low, 3) + ", " + fixed(over.high, 3) + "]",
               fixed(100 * share.value, 1) + " %",
               fixed(100 * mean(grid.values(policy, Figure::kAllocatedUtilisation)), 1) + " %"});
  }
  table.add({"lower bound", shown(Figure::kMeanJct, mean(verdict.lower_bounds)), "1", "", ""});
  return verdict.scenario.name + ": " + verdict.scenario.summary + "\n" + bound_sentence(grid.bound) + "\n" +
         table.text();
}

}  // namespace sluice::simulator
