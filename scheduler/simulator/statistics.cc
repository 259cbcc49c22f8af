#include "scheduler/simulator/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::simulator {

double student_t95(int degrees_of_freedom) {
  static constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                        2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                        2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees_of_freedom < 1) return 0;
  if (degrees_of_freedom <= static_cast<int>(kTable.size())) return kTable[degrees_of_freedom - 1];
  return 1.960 + 2.4 / degrees_of_freedom;  // within 0.002 of the exact value from 31 on
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

Interval mean_interval(const std::vector<double>& values) {
  const double center = mean(values);
  if (values.size() < 2) return {center, center, center};
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  const auto n = static_cast<double>(values.size());
  const double half = student_t95(static_cast<int>(values.size()) - 1) * std::sqrt(squares / (n - 1) / n);
  return {center, center - half, center + half};
}

Interval geometric_interval(const std::vector<double>& values) {
  std::vector<double> logarithms;
  for (const double value : values) logarithms.push_back(std::log(value));
  const Interval of_logs = mean_interval(logarithms);
  return {std::exp(of_logs.value), std::exp(of_logs.low), std::exp(of_logs.high)};
}

Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) ratios.push_back(a[i] / b[i]);
  return geometric_interval(ratios);
}

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace sluice::simulator
