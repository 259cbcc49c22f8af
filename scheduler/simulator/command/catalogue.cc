#include "scheduler/simulator/command/catalogue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "scheduler/simulator/report/report.h"
#include "src/base/table.h"

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

std::string shortened(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.5g", value);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  return text.data();
}

// Five digits say all that seeds can prove.
double rounded(double value) { return std::isfinite(value) ? std::strtod(shortened(value).c_str(), nullptr) : value; }

// One line for each entry.
std::string lines_of(const std::vector<nlohmann::ordered_json>& entries) {
  std::string lines;
  for (const auto& entry : entries) lines += (lines.empty() ? "\n   " : ",\n   ") + entry.dump();
  return "[" + lines + "]";
}

// Sluice as the operator carries it out, and with perfect information, which no operator has.
Table sluice_table(const Grid& grid) {
  Table table(
      {"sluice", "mean JCT", "static / sluice", "utilisation, allocated", "jobs harmed", "workers started per job"});
  const int base = grid.column("static");
  const auto jobs = static_cast<double>(grid.workloads[0].size());
  for (const auto& [policy, text] : {std::pair{"sluice", "as carried out"}, {"perfect", "with perfect information"}}) {
    const int row = grid.column(policy);
    const auto average = [&](Figure figure) { return mean(grid.values(row, figure)); };
    const Interval gain = ratio_interval(grid.values(base, Figure::kMeanJct), grid.values(row, Figure::kMeanJct));
    table.add({text, shown(Figure::kMeanJct, average(Figure::kMeanJct)), fixed(gain.value, 2),
               shown(Figure::kAllocatedUtilisation, average(Figure::kAllocatedUtilisation)),
               shown(Figure::kHarmed, average(Figure::kHarmed)), fixed(average(Figure::kWorkersStarted) / jobs, 1)});
  }
  return table;
}

nlohmann::ordered_json json_of(const Judged& judged) {
  nlohmann::ordered_json entry = {{"name", judged.figure},
                                  {"value", rounded(judged.value.value)},
                                  {"low", rounded(judged.value.low)},
                                  {"high", rounded(judged.value.high)}};
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
         sluice_table(verdict.grid).text() + table.text() + "\n";
}

std::string summary_table(const std::vector<Verdict>& all) {
  std::vector<const Verdict*> verdicts;
  for (const Verdict& verdict : all)
    if (verdict.scenario.reference.contains("jct_gain")) verdicts.push_back(&verdict);
  Table table({"geometric mean over " + std::to_string(verdicts.size()) + " scenarios", "value", "prototype"});
  for (const char* figure : {"jct_gain", "allocated_gain", "wall_gain", "over_best_peer", "share_of_perfect",
                             "over_lower_bound", "no_stall_gain"}) {
    double values = 0, references = 0;
    std::size_t found = 0;
    bool known = true;
    for (const Verdict* verdict : verdicts) {
      for (const Judged& judged : verdict->judged) {
        if (judged.figure != figure) continue;
        ++found;
        values += std::log(judged.value.value);
        known = known && judged.reference;
        references += std::log(judged.reference.value_or(1));
      }
    }
    if (found < verdicts.size()) continue;  // not run, so there is no mean of it
    const auto count = static_cast<double>(found);
    table.add({figure, fixed(std::exp(values / count), 2), known ? fixed(std::exp(references / count), 2) : ""});
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
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  std::string scenarios;
  for (const Verdict& verdict : verdicts) {
    const Grid& grid = verdict.grid;
    std::vector<nlohmann::ordered_json> policies, figures;
    for (int policy = 0; policy < static_cast<int>(grid.policies.size()); ++policy) {
      nlohmann::ordered_json& entry = policies.emplace_back();
      entry["policy"] = grid.policies[policy];
      for (std::size_t i = 0; i < kFigures; ++i) {
        const auto figure = static_cast<Figure>(i);
        entry[std::string(text_of(figure).key)] = rounded(mean(grid.values(policy, figure)));
      }
    }
    for (const Judged& judged : verdict.judged) figures.push_back(json_of(judged));
    scenarios += std::string(scenarios.empty() ? "\n" : ",\n") + " {\"scenario\": " + quoted(verdict.scenario.name) +
                 ", \"summary\": " + quoted(verdict.scenario.summary) +
                 ",\n  \"seeds\": " + std::to_string(grid.workloads.size()) +
                 ", \"jobs_per_seed\": " + std::to_string(grid.workloads[0].size()) +
                 ", \"gain_at_most\": " + shortened(grid.bound.mean_slowdown) +
                 ", \"lower_bound_seconds\": " + shortened(mean(verdict.lower_bounds)) +
                 ",\n  \"policies\": " + lines_of(policies) + ",\n  \"figures\": " + lines_of(figures) + "}";
  }
  return "{\"date\": " + quoted(provenance.date) + ", \"machine\": " + quoted(provenance.machine) +
         ",\n \"versions\": " + quoted(provenance.versions) + ",\n \"scenarios\": [" + scenarios + "]}\n";
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
