#include "scheduler/model/progress.h"

#include <cmath>
#include <thread>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

TEST_CASE("progress follows supply while it is short, and approaches full speed when it is not") {
  struct Row {
    double supply_ratio, want;
  };
  for (const Row& row : {Row{-1, 0}, Row{0, 0}, Row{0.1, 0.1}, Row{0.5, 0.4987}, Row{1, 0.8909}, Row{1.2, 0.9530},
                         Row{2, 0.9974}, Row{100, 1}}) {
    CAPTURE(row.supply_ratio);
    CHECK(progress(row.supply_ratio, 6) == Approx(row.want).margin(1e-4));
  }
}

TEST_CASE("a sharper knee comes closer to min(1, x)") {
  CHECK(progress(0.9, 60) == Approx(0.9).margin(1e-3));
  CHECK(progress(1.1, 60) == Approx(1.0).margin(1e-3));
  CHECK(progress(0.9, 3) < progress(0.9, 6));
}

TEST_CASE("the slope is the derivative, and falls: the curve is concave") {
  double previous = 1;
  for (double x = 0.05; x < 3; x += 0.05) {
    CAPTURE(x);
    const double slope = progress_slope(x, 6);
    CHECK(slope == Approx((progress(x + 1e-6, 6) - progress(x - 1e-6, 6)) / 2e-6).margin(1e-4));
    CHECK(slope <= previous);
    previous = slope;
  }
  CHECK(progress_slope(0, 6) == 1);
  CHECK(progress_slope(1.2, 6) == Approx(0.2).margin(0.01));  // at the headroom a worker still counts
  CHECK(progress_slope(1.4, 6) < 0.1);
}

TEST_CASE("the table is the curve, whichever was asked for before, on every thread") {
  for (const double q : {6.0, 3.0, 6.0, 60.0}) {
    const ProgressTable& table = progress_table(q);
    CHECK(&progress_table(q) == &table);
    for (const double x : {0.0, 0.3, 0.999, 1.0, 1.36, 3.9}) CHECK(std::abs(table(x) - progress(x, q)) < 1e-4);
  }
  std::jthread([] {
    const double there = progress_table(3)(1);
    CHECK(std::abs(there - progress(1, 3)) < 1e-4);
  }).join();
  CHECK(std::abs(progress_table(60)(1) - progress(1, 60)) < 1e-4);
}

}  // namespace
}  // namespace sluice::scheduler
