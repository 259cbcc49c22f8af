#include <array>
#include <cmath>
#include <cstdio>

#include "scheduler/simulator/report.h"

namespace sluice::simulator {
namespace {

std::string padded(const std::string& text, std::size_t width, bool right = true) {
  if (text.size() >= width) return text;
  const std::string blanks(width - text.size(), ' ');
  return right ? blanks + text : text + blanks;
}

std::string with_interval(Figure figure, const Interval& interval) {
  return shown(figure, interval.value) + " [" + shown(figure, interval.low) + "," + shown(figure, interval.high) + "]";
}

constexpr std::array kIntervals = {Figure::kAllocatedUtilisation, Figure::kWallUtilisation, Figure::kMeanJct};

std::string heading() {
  std::string line = padded("policy", 18, false);
  for (const Figure figure : kIntervals) line += padded(std::string(text_of(figure).title), 28);
  line += padded("ratio of JCT", 21);
  for (std::size_t i = 3; i < kFigures; ++i) {
    const std::string title(text_of(static_cast<Figure>(i)).title);
    line += "  " + title;
  }
  return line + "\n";
}

std::string row(const Grid& grid, int policy) {
  std::string line = padded(grid.policies[policy], 18, false);
  for (const Figure figure : kIntervals)
    line += padded(with_interval(figure, mean_interval(grid.values(policy, figure))), 28);
  const Interval ratio = ratio_interval(grid.values(0, Figure::kMeanJct), grid.values(policy, Figure::kMeanJct));
  line += padded(fixed(ratio.value, 2) + " [" + fixed(ratio.low, 2) + "," + fixed(ratio.high, 2) + "]", 21);
  for (std::size_t i = 3; i < kFigures; ++i) {
    const auto figure = static_cast<Figure>(i);
    const std::size_t width = text_of(figure).title.size() + 2;
    line += padded(shown(figure, mean(grid.values(policy, figure))), width);
  }
  return line + "\n";
}

}  // namespace

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  return text.data();
}

std::string shown(Figure figure, double value) {
  const std::string_view unit = text_of(figure).unit;
  if (unit == "%") return fixed(100 * value, 1) + "%";
  if (unit == "s") return value < 600 ? fixed(value, 0) + "s" : fixed(value / 3600, 2) + "h";
  if (unit == "h") return fixed(value, 0) + "h";
  if (unit == "$") return "$" + fixed(value, 0);
  if (unit == "x") return fixed(value, 2);
  return fixed(value, value < 10 ? 2 : 0);
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

std::string text_report(const Scenario& scenario, const Grid& grid) {
  std::string text = scenario.name + ": " + scenario.summary + "\n";
  text += std::to_string(grid.workloads.size()) + " seeds, " + std::to_string(grid.workloads[0].size()) +
          " jobs each; means, [95 % confidence interval]; ratio of JCT: " + grid.policies[0] + " / policy, geometric.\n";
  text += bound_sentence(grid.bound) + "\n\n" + heading();
  for (int policy = 0; policy < static_cast<int>(grid.policies.size()); ++policy) text += row(grid, policy);
  return text;
}

}  // namespace sluice::simulator
