// Metrics whose pipeline is slow, and those that have ended.
#include <algorithm>

#include "scheduler/estimate/estimator.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("metrics that are always late count while they keep coming") {
  struct Row {
    const char* situation;
    double age_seconds;   // of the end of each window, when it is first seen
    double step_seconds;  // between two of them
    int measurements;
    double then_seconds;  // later
    bool want;            // the last one counts
  };
  const Row rows[] = {
      {"two minutes late, every 15 s", 120, 15, 10, 0, true},
      {"the first one: nothing tells that others will follow", 120, 15, 1, 0, false},
      {"two minutes late, every minute, just before the next one", 120, 60, 5, 59, true},
      {"every two minutes, which is more than the limit", 20, 120, 5, 119, true},
      {"they have ended", 120, 15, 10, 91, false},
      {"every two minutes, and two of them have not come", 20, 120, 5, 241, false},
      {"older than five minutes", 301, 15, 10, 0, false},
  };
  const FluidJob truth{.demand = 8000, .local_rate = 1000, .local_cores = 1};
  for (const Row& row : rows) {
    INFO(row.situation);
    MakeJob make("a");
    double now_seconds = kNowSeconds;
    for (int i = 0; i < row.measurements; ++i, now_seconds += row.step_seconds)
      make.measures(truth.steady(0, now_seconds - row.age_seconds))
          .memory(estimate_of(make.obj(), now_seconds, kConfig).memory.value_or(EstimatorMemory{}));
    now_seconds += row.then_seconds - row.step_seconds;
    CHECK(estimate_of(make.obj(), now_seconds, kConfig).metrics_usable() == row.want);
  }
}

TEST_CASE("metrics that were late count at once when their pipeline catches up, and after a clock went back") {
  const FluidJob truth{.demand = 8000, .local_rate = 1000, .local_cores = 1};
  for (const double jump_seconds : {-3600.0, 115.0}) {
    CAPTURE(jump_seconds);
    MakeJob make("a");
    for (int i = 0; i < 5; ++i)
      make.measures(truth.steady(0, kNowSeconds + 15 * i - 120))
          .memory(estimate_of(make.obj(), kNowSeconds + 15 * i, kConfig).memory.value_or(EstimatorMemory{}));
    const double now_seconds = kNowSeconds + 75 + std::min(jump_seconds, 0.0);
    make.measures(truth.steady(0, now_seconds - 5));
    CHECK(estimate_of(make.obj(), now_seconds, kConfig).metrics_usable());
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
