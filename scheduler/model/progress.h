// The progress curve of a training job: which share of its full speed it reaches at a given supply of data.
//
//   f(x) = softmin(1, x) = (1 + x^-q)^(-1/q)      x = supply / demand, q = sharpness of the knee
//
// f is increasing and concave, so a greedy that always takes the steepest next worker cannot be trapped.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::scheduler {

// REQUIRES: q > 0. Negative or zero supply gives no progress.
inline double progress(double supply_ratio, double q) {
  if (supply_ratio <= 0) return 0;
  return std::pow(1 + std::pow(supply_ratio, -q), -1 / q);
}

// df/dx, 1 at x = 0 and falling to 0.
inline double progress_slope(double supply_ratio, double q) {
  if (supply_ratio <= 0) return 1;
  return std::pow(1 + std::pow(supply_ratio, q), -1 - 1 / q);
}

// The x at which the slope has fallen to `slope`, 0 < slope < 1.
inline double supply_ratio_at_slope(double slope, double q) {
  return std::pow(std::pow(slope, -q / (1 + q)) - 1, 1 / q);
}

// The x at which `share` of full speed is reached, 0 < share < 1: the inverse of f.
inline double supply_ratio_at(double share, double q) { return std::pow(std::pow(share, -q) - 1, -1 / q); }

// f from a table, for callers that need it a million times: linear between the points, which keeps it concave; off by
// less than 1e-5.
class ProgressTable {
 public:
  explicit ProgressTable(double q) {
    for (int i = 0; i <= kPoints; ++i) values_[i] = progress(i / kPointsPerUnit, q);
  }

  double operator()(double supply_ratio) const {
    // What is not a number counts as no supply: as an index it would lie outside the table.
    const double at = supply_ratio > 0 ? std::min(supply_ratio, kPoints / kPointsPerUnit) * kPointsPerUnit : 0;
    const int point = std::min(static_cast<int>(at), kPoints - 1);
    return values_[point] + (at - point) * (values_[point + 1] - values_[point]);
  }

 private:
  static constexpr int kPoints = 1024;
  static constexpr double kPointsPerUnit = 256;  // up to x = 4, where the slope is below 1e-4
  std::array<double, kPoints + 1> values_{};
};

// The table for q, made once for each thread that asks for the same q again: making it takes as long as a small
// decision. Valid until the thread asks for another q.
inline const ProgressTable& progress_table(double q) {
  thread_local double made_for = q;
  thread_local ProgressTable table(q);
  if (made_for != q) {
    table = ProgressTable(q);
    made_for = q;
  }
  return table;
}

}  // namespace sluice::scheduler
