#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "scheduler/simulator/report/cached_reads.h"
#include "scheduler/simulator/report/report.h"

namespace sluice::simulator {
namespace {

// Seconds or hours, as it suits `like`: a value and its interval are in the same unit.
std::string shown_like(Figure figure, double value, double like) {
  if (text_of(figure).unit != "s") return shown(figure, value);
  return like < 600 ? fixed(value, 0) + " s" : fixed(value / 3600, 2) + " h";
}

// No figure is negative and no share above 100 %, whatever few seeds make of an interval.
std::string with_interval(Figure figure, const Interval& interval) {
  const double low = std::max(0.0, interval.low);
  const double high = text_of(figure).unit == "%" ? std::min(1.0, interval.high) : interval.high;
  return shown(figure, interval.value) + " [" + shown_like(figure, low, interval.value) + ", " +
         shown_like(figure, high, interval.value) + "]";
}

// How fast the simulator was, and what each policy cost. What counts as an event: RunRecord::events.
Table speed_table(const Grid& grid) {
  Table table({"policy", "events", "per CPU-second", "with the policy", "decisions", "each"});
  for (std::size_t policy = 0; policy < grid.policies.size(); ++policy) {
    double events = 0, decisions = 0, decide_seconds = 0, all_seconds = 0;
    for (const RunRecord& run : grid.runs[policy]) {
      events += static_cast<double>(run.events);
      decisions += static_cast<double>(run.decisions);
      decide_seconds += run.decide_seconds;
      all_seconds += run.cpu_seconds;
    }
    table.add({grid.policies[policy], fixed(events, 0), fixed(events / (all_seconds - decide_seconds), 0),
               fixed(events / all_seconds, 0), fixed(decisions, 0),
               fixed(1e6 * decide_seconds / std::max(1.0, decisions), 1) + " us"});
  }
  return table;
}

std::string ratio_text(const Interval& ratio) {
  return fixed(ratio.value, 2) + " [" + fixed(ratio.low, 2) + ", " + fixed(ratio.high, 2) + "]";
}

}  // namespace

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return "-";  // nothing over nothing: the utilisation of a time in which no job ran
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  return text.data();
}

std::string shown(Figure figure, double value) {
  const std::string_view unit = text_of(figure).unit;
  if (unit == "%") return fixed(100 * value, 1) + " %";
  if (unit == "s") return shown_like(figure, value, value);
  if (unit == "core-h") return fixed(value, value < 10 ? 1 : 0);
  if (unit == "$") return "$" + fixed(value, 0);
  if (unit == "x") return fixed(value, 2);
  return fixed(value, value < 10 && value != std::floor(value) ? 2 : 0);
}

std::string bound_sentence(const Bound& bound) {
  if (bound.mean_slowdown < 1.01)
    return "Bound: nothing to gain. The GPU-proportional share of the CPU feeds these jobs (E[s] = " +
           fixed(bound.mean_slowdown, 2) + ").";
  return "Bound: no policy gains more than " + fixed(bound.mean_slowdown, 2) +
         "x allocated utilisation over static (E[s]), and no more than " + fixed(bound.when_full, 2) +
         "x while every GPU is allocated (" + fixed(bound.effective_cores, 1) + " local-equivalent cores per GPU for " +
         fixed(bound.mean_knee, 1) + " wanted); a single job no more than " + fixed(bound.best_single_job, 1) + "x.";
}

Table policy_table(const Grid& grid) {
  std::vector<std::string> heading = {"policy"};
  for (std::size_t i = 0; i < kFigures; ++i) heading.emplace_back(text_of(static_cast<Figure>(i)).title);
  heading.insert(heading.begin() + 4, {"JCT gain", "allocated gain", "wall gain"});
  Table table(std::move(heading));
  for (int policy = 0; policy < static_cast<int>(grid.policies.size()); ++policy) {
    std::vector<std::string> row = {grid.policies[policy]};
    for (std::size_t i = 0; i < kFigures; ++i) {
      const auto figure = static_cast<Figure>(i);
      row.push_back(with_interval(figure, mean_interval(grid.values(policy, figure))));
    }
    const auto ratio = [&](int over, int under, Figure figure) {
      return ratio_text(ratio_interval(grid.values(over, figure), grid.values(under, figure)));
    };
    row.insert(row.begin() + 4, {ratio(0, policy, Figure::kMeanJct), ratio(policy, 0, Figure::kAllocatedUtilisation),
                                 ratio(policy, 0, Figure::kWallUtilisation)});
    table.add(std::move(row));
  }
  return table;
}

std::string text_report(const Scenario& scenario, const Grid& grid) {
  const std::string reads = scenario.cluster.data_sets.empty() ? "" : cached_reads_table(grid).text() + "\n";
  return scenario.name + ": " + scenario.summary + "\n" + std::to_string(grid.workloads.size()) + " seeds, " +
         std::to_string(grid.workloads[0].size()) +
         " jobs each. Means and 95 % intervals; gains are geometric means of pairs with " + grid.policies[0] + ".\n" +
         bound_sentence(grid.bound) + "\n\n" + policy_table(grid).text() + "\n" + reads + speed_table(grid).text();
}

}  // namespace sluice::simulator
