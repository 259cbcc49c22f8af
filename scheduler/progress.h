// The progress curve of a training job: which share of its full speed it reaches at a given supply of data.
//
//   f(x) = softmin(1, x) = (1 + x^-q)^(-1/q)      x = supply / demand, q = sharpness of the knee
//
// f is increasing and concave, so a greedy that always takes the steepest next worker cannot be trapped.
#pragma once

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

}  // namespace sluice::scheduler
