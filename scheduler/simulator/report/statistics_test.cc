#include "scheduler/simulator/report/statistics.h"

#include <cmath>

#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

TEST_CASE("The interval of a mean is Student's") {
  const Interval interval = mean_interval({1, 2, 3, 4, 5});
  CHECK(interval.value == 3);
  // t(4) = 2.776, s / sqrt(n) = sqrt(2.5 / 5)
  CHECK(interval.high - interval.value == Approx(2.776 * std::sqrt(0.5)).epsilon(1e-3));
  CHECK(interval.value - interval.low == Approx(interval.high - interval.value));
}

TEST_CASE("One observation has no interval, none has no mean") {
  CHECK(mean_interval({7}).low == 7);
  CHECK(mean_interval({}).value == 0);
  CHECK(percentile({}, 0.5) == 0);
}

TEST_CASE("Ratios are compared pair by pair, by their logarithms") {
  const Interval ratio = ratio_interval({2, 8}, {1, 2});
  CHECK(ratio.value == Approx(std::sqrt(8.0)));
  CHECK(ratio.low * ratio.high == Approx(ratio.value * ratio.value));
  CHECK(ratio_interval({3, 6, 9}, {1, 2, 3}).high == Approx(3));
}

TEST_CASE("Percentiles lie between neighbours") {
  CHECK(percentile({4, 1, 3, 2}, 0.5) == Approx(2.5));
  CHECK(percentile({5}, 0.99) == 5);
  CHECK(percentile({1, 2, 3}, 1) == 3);
}

TEST_CASE("Student's quantile goes down to the normal one") {
  CHECK(student_t95(7) == Approx(2.365).epsilon(1e-3));
  CHECK(student_t95(0) == 0);
  CHECK(student_t95(60) == Approx(2.000).epsilon(1e-3));
  CHECK(student_t95(100000) == Approx(1.96).epsilon(1e-3));
}

}  // namespace
}  // namespace sluice::simulator
