#include "scheduler/simulator/report/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace sluice::simulator {

double student_t95(int degrees_of_freedom) {
  if (degrees_of_freedom < 1) return 0;
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), 0.975);
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
  logarithms.reserve(values.size());
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
