#include "scheduler/estimate/estimator.h"

#include <limits>

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

// Windows of metrics that are wrong or missing: what is believed in them, and what remains of it.
namespace sluice::scheduler::testing {
namespace {

// A job that has been measured for so many windows, always the same.
Job known_for(int windows, const FluidJob& truth, double remote_cores) {
  Job job = MakeJob("a").measures(truth.steady(remote_cores, kNowSeconds)).obj();
  for (int i = 0; i < windows; ++i) {
    job.observation.measurement = later(truth.steady(remote_cores, kNowSeconds), i);
    job.memory = estimate_of(job, kNowSeconds + 15 * i, kConfig).memory;
  }
  job.observation.measurement = later(truth.steady(remote_cores, kNowSeconds), windows);
  return job;
}

TEST_CASE("one window that is wrong, after ten that were right: what is believed in it, and ten windows later") {
  struct Row {
    const char* situation;
    void (*spoil)(Measurement&);
    double least, most;  // of the knee, in the window itself; the truth is 8
  };
  const Row rows[] = {
      {"ten times the samples", [](Measurement& m) { m.samples_per_second *= 10; }, 8, 23},
      {"a tenth of the samples", [](Measurement& m) { m.samples_per_second /= 10; }, 5, 8},
      {"ten times the samples of the workers, too",
       [](Measurement& m) {
         m.samples_per_second *= 10, m.local->samples_per_second *= 10, m.remote->samples_per_second *= 10;
       },
       7.9, 8.1},
      {"ten times the CPU", [](Measurement& m) { m.local->busy_cores *= 10, m.remote->busy_cores *= 10; }, 8, 23},
      {"a tenth of the CPU", [](Measurement& m) { m.local->busy_cores /= 10, m.remote->busy_cores /= 10; }, 5, 8},
      {"the first samples of a cold cache cost four times as much",
       [](Measurement& m) { m.local->samples_per_second /= 4, m.remote->samples_per_second /= 4; }, 8, 14},
      {"the local counter was reset", [](Measurement& m) { m.local->samples_per_second = -1e6; }, 8, 8},
      {"the local counter is gone", [](Measurement& m) { m.local.reset(); }, 7.9, 8.1},
      {"the remote counter is gone", [](Measurement& m) { m.remote.reset(); }, 7.9, 8.1},
      {"the local executors did nothing",
       [](Measurement& m) {
         m.local = SourceRate{0, 0};
       },
       7.9, 8.1},
      {"a rate that is not a number",
       [](Measurement& m) { m.remote->busy_cores = std::numeric_limits<double>::quiet_NaN(); }, 8, 8},
      {"a number of samples without end",
       [](Measurement& m) { m.samples_per_second = std::numeric_limits<double>::infinity(); }, 8, 8},
      {"an evaluation took all but a few batches",
       [](Measurement& m) { m.samples_per_second /= 50, m.compute_share /= 50, m.batches_in_window = 5; }, 8, 8},
      {"the last step of the epoch: nothing but waiting",
       [](Measurement& m) { m.samples_per_second = m.compute_share = 0, m.wait_share = 1; }, 8, 8},
  };
  const FluidJob truth{.demand = 8000};
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = known_for(10, truth, 8);
    row.spoil(*job.observation.measurement);
    const Estimate estimate = estimate_of(job, kNowSeconds + 150, kConfig);
    REQUIRE(estimate.known);
    CHECK(estimate.measured_knee_cores >= row.least * (1 - 1e-9));
    CHECK(estimate.measured_knee_cores <= row.most * (1 + 1e-9));
    job.memory = estimate.memory;
    for (int i = 11; i <= 30; ++i) {
      job.observation.measurement = later(truth.steady(8, kNowSeconds), i);
      job.memory = estimate_of(job, kNowSeconds + 15 * i, kConfig).memory;
    }
    CHECK(job.memory->knee_cores->published == Approx(8).epsilon(0.12));
    CHECK(job.memory->local_rate_per_core->published == Approx(1000).epsilon(0.12));
  }
}

TEST_CASE("who leaves out the reason why there are no metrics is told of none") {
  CHECK(estimate_of(MakeJob("a").misses("").obj(), kNowSeconds, kConfig).metrics_problem == "no metrics");
  CHECK(estimate_of(MakeJob("a").misses("gone").obj(), kNowSeconds, kConfig).metrics_problem == "gone");
}

TEST_CASE("metrics come and go: what was learnt before they went is what is known when they come back") {
  Job job = known_for(5, FluidJob{.demand = 8000}, 4);
  const EstimatorMemory before = *job.memory;
  job.observation = {std::nullopt, "Prometheus is away"};
  for (int i = 0; i < 40; ++i) {
    const Estimate estimate = estimate_of(job, kNowSeconds + 100 + 15 * i, kConfig);
    CHECK(estimate.known);
    CHECK(estimate.knee_cores == Approx(8));
    CHECK(estimate.unmeasured_seconds == 15 * i);
    job.memory = estimate.memory;
  }
  job.observation.measurement = FluidJob{.demand = 8000}.steady(4, kNowSeconds + 700);
  const Estimate back = estimate_of(job, kNowSeconds + 700, kConfig);
  CHECK(back.unmeasured_seconds == 0);
  CHECK_FALSE(back.memory->unmeasured_since_seconds);
  CHECK(back.memory->knee_cores->published == Approx(before.knee_cores->published));
}

}  // namespace
}  // namespace sluice::scheduler::testing
