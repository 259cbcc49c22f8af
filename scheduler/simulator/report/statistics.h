// Statistics of repeated runs. Times and ratios of runs are skewed, so ratios are compared by their logarithms.
//
// Thread safety: pure functions.
#pragma once

#include <vector>

namespace sluice::simulator {

// A value and its 95 % confidence interval (Student's t). With one observation the interval is the value itself.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

Interval mean_interval(const std::vector<double>& values);
// REQUIRES: values > 0
Interval geometric_interval(const std::vector<double>& values);
// Of a[i] / b[i], pair by pair. REQUIRES: the same size, all > 0
Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b);

double mean(const std::vector<double>& values);
// The value below which a share `p` of them lie, interpolated between neighbours; 0 of nothing.
double percentile(std::vector<double> values, double p);
// Two-sided 95 % quantile of Student's t.
double student_t95(int degrees_of_freedom);

}  // namespace sluice::simulator
