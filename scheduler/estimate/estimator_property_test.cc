// What holds of the estimator whatever it is shown.
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/estimate/estimator.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// A figure between `least` and `most`, on a logarithmic scale.
double between(double least, double most) {
  return least * std::pow(most / least, static_cast<double>(*rc::gen::inRange(0, 1001)) / 1000);
}

FluidJob some_truth() {
  FluidJob truth;
  truth.local_rate = between(10, 1e5);
  truth.demand = truth.local_rate * between(0.3, 60);
  truth.remote_rate = truth.local_rate * between(0.3, 1.5);
  truth.local_cores = between(0.25, 16);
  truth.batch_size = 1;
  return truth;
}

Job job_seen(const Measurement& m, const std::optional<EstimatorMemory>& memory = std::nullopt) {
  Job job = MakeJob("a").measures(m).obj();
  job.memory = memory;
  return job;
}

TEST_CASE("the knee does not depend on how well the job is fed") {
  CHECK(rc::check("fed", [] {
    const FluidJob truth = some_truth();
    const double knee = truth.demand / truth.local_rate;
    const double cores = between(0.01, 3) * knee;
    const Estimate estimate = estimate_of(job_seen(truth.steady(cores, kNowSeconds)), kNowSeconds, kConfig);
    // A few milliseconds of CPU are no measurement.
    RC_PRE(estimate.known && estimate.memory->local_rate_per_core && estimate.memory->remote_rate_per_core);
    RC_ASSERT(estimate.measured_knee_cores == Approx(knee).epsilon(1e-6));
    RC_ASSERT(estimate.efficiency() == Approx(truth.remote_rate / truth.local_rate).epsilon(1e-6));
  }));
}

TEST_CASE("a sample is whatever the job calls one: another unit changes no decision") {
  CHECK(rc::check("unit", [] {
    const FluidJob truth = some_truth();
    Measurement m = truth.steady(between(0.1, 20), kNowSeconds);
    const Estimate one = estimate_of(job_seen(m), kNowSeconds, kConfig);
    const double unit = between(1e-3, 1e3);
    m.samples_per_second *= unit;
    m.local->samples_per_second *= unit;
    m.remote->samples_per_second *= unit;
    const Estimate other = estimate_of(job_seen(m), kNowSeconds, kConfig);
    RC_ASSERT(other.known == one.known);
    RC_PRE(one.known);
    RC_ASSERT(other.knee_cores == Approx(one.knee_cores));
    RC_ASSERT(other.efficiency() == Approx(one.efficiency()));
  }));
}

TEST_CASE("nothing is believed that was never seen: a published value lies between the smallest and the largest") {
  CHECK(rc::check("range", [] {
    const double first = between(0.1, 100);
    double least = first, most = first;
    Tracked tracked = Tracked::starting_at(first);
    for (int i = *rc::gen::inRange(1, 100); i > 0; --i) {
      const double value = first * between(0.2, 5);
      least = std::min(least, value), most = std::max(most, value);
      tracked.take(value, kConfig);
      RC_ASSERT(tracked.published >= least * (1 - 1e-9));
      RC_ASSERT(tracked.published <= most * (1 + 1e-9));
    }
  }));
}

TEST_CASE("whatever happens, the correction stays within its limits and the estimate within numbers") {
  CHECK(rc::check("limits", [] {
    Job job = MakeJob("a").holds(*rc::gen::inRange(0, 20), "n1").obj();
    for (int window = 0; window < 30; ++window) {
      const double now = kNowSeconds + 20 * window;
      FluidJob shown = some_truth();
      Measurement m = shown.steady(job.allocated_workers, now);
      m.wait_share = between(1e-3, 1);
      m.compute_share = between(1e-3, 1);
      job.observation.measurement = m;
      const Estimate estimate = estimate_of(job, now, kConfig);
      job.memory = estimate.memory;
      if (!estimate.known) continue;
      RC_ASSERT(job.memory->feedback >= 1 / kConfig.feedback_limit - 1e-9);
      RC_ASSERT(job.memory->feedback <= kConfig.feedback_limit + 1e-9);
      RC_ASSERT(std::isfinite(estimate.knee_cores) && estimate.knee_cores > 0);
      RC_ASSERT(estimate.efficiency() > 0);
    }
  }));
}

TEST_CASE("a measurement that must not be used leaves no trace") {
  CHECK(rc::check("refused", [] {
    const FluidJob truth = some_truth();
    Measurement m = truth.steady(4, kNowSeconds);
    const auto memory = estimate_of(job_seen(m), kNowSeconds, kConfig).memory;
    m.window_end_seconds += 15;
    switch (*rc::gen::inRange(0, 5)) {
      case 0: m.samples_per_second = std::numeric_limits<double>::quiet_NaN(); break;
      case 1: m.wait_share = -between(1e-6, 1); break;
      case 2: m.remote->busy_cores = std::numeric_limits<double>::infinity(); break;
      case 3: m.window_end_seconds -= 15 + kConfig.max_age_seconds + between(1, 1e6); break;
      default: m.window_seconds = between(0.01, 9.99);
    }
    const Estimate estimate = estimate_of(job_seen(m, memory), kNowSeconds + 15, kConfig);
    RC_ASSERT(!estimate.metrics_problem.empty());
    EstimatorMemory after = *estimate.memory;
    after.unmeasured_since_seconds.reset();
    after.arrivals = memory->arrivals;
    RC_ASSERT(after == *memory);
  }));
}

}  // namespace
}  // namespace sluice::scheduler::testing
