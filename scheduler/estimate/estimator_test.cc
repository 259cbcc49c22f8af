#include "scheduler/estimate/estimator.h"

#include <cmath>
#include <limits>

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("demand, rates and knee are exact from the counters of a fluid model, starved or sated") {
  for (const double remote_cores : {0.5, 2.0, 8.0, 20.0}) {
    for (const double local_cores : {0.25, 1.0, 4.0}) {
      CAPTURE(remote_cores, local_cores);
      const FluidJob truth{.demand = 8000, .local_rate = 1000, .remote_rate = 600, .local_cores = local_cores};
      const Job job = MakeJob("a")
                          .local_millicores(static_cast<int>(local_cores * 1000))
                          .measures(truth.steady(remote_cores, kNowSeconds))
                          .obj();
      const Estimate estimate = estimate_of(job, kNowSeconds, kConfig);
      REQUIRE(estimate.known);
      CHECK(estimate.demand_samples_per_second == Approx(8000));
      CHECK(estimate.local_rate_per_core == Approx(1000));
      CHECK(estimate.remote_rate_per_core == Approx(600));
      CHECK(estimate.knee_cores == Approx(8));
      CHECK(estimate.wait_share == Approx(1 - truth.full_speed_fraction(remote_cores)));
      CHECK(estimate.confidence == Confidence::kMeasured);
    }
  }
}

TEST_CASE("the remaining samples at the demand, starved or not, are the remaining time") {
  const FluidJob truth{.demand = 8000, .local_rate = 1000, .local_cores = 1};
  const auto remaining = [](const MakeJob& make, std::optional<double> samples, double now_seconds = kNowSeconds) {
    Job job = make.obj();
    job.remaining_samples = samples;
    return estimate_of(job, now_seconds, kConfig).remaining_seconds;
  };
  const MakeJob starved = MakeJob("a").measures(truth), unmeasured("a");
  CHECK(remaining(starved, 8000 * 60) == Approx(60));
  CHECK(remaining(starved, 0) == 0.0);
  CHECK_FALSE(remaining(starved, std::nullopt));
  CHECK_FALSE(remaining(unmeasured, 8000 * 60));

  // One window that shows half of the demand more moves it no more than it moves the knee.
  const Estimate first = estimate_of(starved.obj(), kNowSeconds, kConfig);
  FluidJob noisy = truth;
  noisy.demand *= 1.5;
  const MakeJob later_job = MakeJob("a").measures(later(noisy.steady(0, kNowSeconds))).memory(*first.memory);
  const double mean_knee_cores = std::sqrt(8.0 * 12);
  CHECK(estimate_of(later_job.obj(), kNowSeconds + 60, kConfig).measured_knee_cores == Approx(mean_knee_cores));
  CHECK(remaining(later_job, 8000 * 60, kNowSeconds + 60).value_or(0) == Approx(60 * 8 / mean_knee_cores));
  // Without a usable measurement what is remembered counts.
  CHECK(remaining(MakeJob("a").misses("Prometheus is away").memory(*first.memory), 8000 * 60) == Approx(60));
}

TEST_CASE("evaluation pauses and checkpoints do not dilute the demand") {
  Measurement m = FluidJob{.demand = 1000, .local_cores = 0.5}.steady(0, kNowSeconds);
  m.samples_per_second *= 0.4;  // training 40 % of the time
  m.compute_share *= 0.4;
  m.wait_share *= 0.4;
  const Estimate estimate = estimate_of(MakeJob("a").measures(m).obj(), kNowSeconds, kConfig);
  CHECK(estimate.demand_samples_per_second == Approx(1000));
  CHECK(estimate.wait_share == Approx(0.5).margin(0.01));
}

TEST_CASE("an unmeasured job is worth probing once it waits clearly, or noticeably through two windows") {
  Measurement few = FluidJob{.demand = 1000, .local_cores = 0.5}.steady(0, kNowSeconds);
  few.batches_in_window = 3;
  std::optional<EstimatorMemory> memory;
  // The estimate of a window that ends so many windows later.
  const auto probed = [&](double windows_later, double wait_share) {
    Measurement m = few;
    m.window_end_seconds += windows_later * m.window_seconds;
    m.compute_share = 1 - wait_share;
    m.wait_share = wait_share;
    MakeJob job = MakeJob("a").measures(m);
    if (memory) job.memory(*memory);
    const Estimate estimate = estimate_of(job.obj(), m.window_end_seconds, kConfig);
    CHECK_FALSE(estimate.known);
    memory = estimate.memory;
    return estimate.worth_probing;
  };
  CHECK(probed(0, 0.3));
  CHECK_FALSE(probed(0.1, 0.01));
  CHECK_FALSE(probed(1, 0.1));  // a late batch enters the window
  CHECK_FALSE(probed(1.5, 0.1));
  CHECK_FALSE(probed(1.9, 0.1));
  CHECK_FALSE(probed(2, 0.01));  // and has left it
  CHECK_FALSE(probed(3, 0.1));
  CHECK(probed(4, 0.1));  // none of the first window's batches is in this one
}

TEST_CASE("a feeder throttled to a fraction of its core shows the same rate per core") {
  FluidJob truth{.demand = 8000, .local_rate = 1000, .local_cores = 1};
  const Estimate full = estimate_of(MakeJob("a").measures(truth).obj(), kNowSeconds, kConfig);
  truth.local_cores = 0.2;
  const Estimate throttled = estimate_of(MakeJob("a").measures(truth).obj(), kNowSeconds, kConfig);
  CHECK(throttled.local_rate_per_core == Approx(full.local_rate_per_core));
  CHECK(throttled.knee_cores == Approx(full.knee_cores));
}

TEST_CASE("a rate that was never measured is derived from the other") {
  const FluidJob truth{.demand = 8000, .local_rate = 1000, .remote_rate = 500};

  SECTION("no remote worker yet") {
    const Estimate estimate =
        estimate_of(MakeJob("a").measures(truth.steady(0, kNowSeconds)).obj(), kNowSeconds, kConfig);
    CHECK(estimate.remote_rate_per_core == Approx(770));
    CHECK(estimate.confidence == Confidence::kAssumed);
  }
  SECTION("nothing is done locally") {
    Measurement m = truth.steady(4, kNowSeconds);
    m.local.reset();
    const Estimate estimate = estimate_of(MakeJob("a").measures(m).obj(), kNowSeconds, kConfig);
    CHECK(estimate.local_rate_per_core == Approx(500 / 0.77));
    CHECK(estimate.knee_cores == Approx(8000 / (500 / 0.77)));
    CHECK(estimate.efficiency() == Approx(0.77));
    CHECK(estimate.local_cores == 0);
  }
  SECTION("neither") {
    Measurement m = truth.steady(0, kNowSeconds);
    m.local.reset();
    const Estimate estimate = estimate_of(MakeJob("a").measures(m).obj(), kNowSeconds, kConfig);
    CHECK_FALSE(estimate.known);
    CHECK(estimate.starved);
    CHECK(estimate.confidence == Confidence::kNone);
    // Proportional start: as if what there is now were the knee.
    const Job job = MakeJob("a").local_millicores(2000).obj();
    CHECK(estimate.supply_ratio(0, job, kConfig) == Approx(1 - estimate.wait_share));
    CHECK(estimate.supply_ratio(1, job, kConfig) == Approx(1 - estimate.wait_share + 0.77 / 2));
  }
  SECTION("a few milliseconds of CPU are no measurement") {
    Measurement m = truth.steady(4, kNowSeconds);
    m.local = SourceRate{0.001, 0.005};
    const Estimate estimate = estimate_of(MakeJob("a").measures(m).obj(), kNowSeconds, kConfig);
    CHECK_FALSE(estimate.memory->local_rate_per_core);
  }
}

TEST_CASE("the need is not disturbed when an assumed local rate is replaced by the measured one") {
  const FluidJob truth{.demand = 10000, .local_rate = 2000, .remote_rate = 1000, .local_cores = 1};
  Measurement first = truth.steady(4, kNowSeconds);
  first.local.reset();
  const Estimate before = estimate_of(MakeJob("a").measures(first).obj(), kNowSeconds, kConfig);
  const Job job = MakeJob("a").memory(*before.memory).measures(later(truth.steady(4, kNowSeconds))).obj();
  const Estimate after = estimate_of(job, kNowSeconds + 15, kConfig);
  CHECK(after.knee_cores == Approx(5));
  // Both are D / mu_R, less what the local cores do by now.
  CHECK(after.remote_cores_for(after.knee_cores, 1) ==
        Approx(before.remote_cores_for(before.knee_cores, 1) - after.local_cores / after.efficiency()));
}

TEST_CASE("metrics that must not be used are named, and nothing is learnt from them") {
  const Measurement good = FluidJob{.demand = 8000}.steady(2, kNowSeconds);
  struct Row {
    const char* situation;
    std::string want;
    void (*spoil)(Measurement&);
  };
  const Row rows[] = {
      {"rate is NaN", "not numbers", [](Measurement& m) { m.samples_per_second = kNaN; }},
      {"share is infinite", "not numbers",
       [](Measurement& m) { m.wait_share = std::numeric_limits<double>::infinity(); }},
      {"counter reset read as negative rate", "not numbers", [](Measurement& m) { m.local->busy_cores = -0.1; }},
      {"time is NaN", "not numbers", [](Measurement& m) { m.window_end_seconds = kNaN; }},
      {"window is NaN", "not numbers", [](Measurement& m) { m.window_seconds = kNaN; }},
      {"compute share is negative", "not numbers", [](Measurement& m) { m.compute_share = -0.1; }},
      {"number of batches is NaN", "not numbers", [](Measurement& m) { m.batches_in_window = kNaN; }},
      {"number of workers at work is NaN", "not numbers", [](Measurement& m) { m.workers_at_work = kNaN; }},
      {"number of workers at work is negative", "not numbers", [](Measurement& m) { m.workers_at_work = -1; }},
      {"remote rate is NaN", "not numbers", [](Measurement& m) { m.remote->samples_per_second = kNaN; }},
      {"depth of the queue is NaN", "not numbers",
       [](Measurement& m) {
         m.queue = {kNaN, 16};
       }},
      {"capacity of the queue is negative", "not numbers",
       [](Measurement& m) {
         m.queue = {0, -16};
       }},
      {"too old", "are 91 s old (limit 90 s)", [](Measurement& m) { m.window_end_seconds -= 91; }},
      {"window too short", "window of 9 s is shorter than 10 s", [](Measurement& m) { m.window_seconds = 9; }},
      {"no step at all", "no training step", [](Measurement& m) { m.compute_share = m.wait_share = 0; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Measurement m = good;
    row.spoil(m);
    const Estimate fresh = estimate_of(MakeJob("a").measures(m).obj(), kNowSeconds, kConfig);
    CHECK_THAT(fresh.metrics_problem, Catch::Contains(row.want));
    CHECK_FALSE(fresh.known);
    EstimatorMemory nothing_learnt{.feeders = FeederSpell{1, 0}, .unmeasured_since_seconds = kNowSeconds};
    nothing_learnt.arrivals = fresh.memory->arrivals;  // late_metrics_test.cc
    CHECK(fresh.memory == nothing_learnt);

    EstimatorMemory memory = *estimate_of(MakeJob("a").measures(good).obj(), kNowSeconds, kConfig).memory;
    const Estimate remembered = estimate_of(MakeJob("a").memory(memory).measures(m).obj(), kNowSeconds, kConfig);
    CHECK(remembered.known);
    CHECK(remembered.knee_cores == Approx(8));
    memory.unmeasured_since_seconds = kNowSeconds;
    memory.arrivals = remembered.memory->arrivals;
    CHECK(remembered.memory == memory);
  }
  CHECK(estimate_of(MakeJob("a").misses("Prometheus is away").obj(), kNowSeconds, kConfig).metrics_problem ==
        "Prometheus is away");
  CHECK(estimate_of(MakeJob("a").misses("").obj(), kNowSeconds, kConfig).metrics_problem == "no metrics");
  CHECK(estimate_of(MakeJob("a").measures(good).obj(), kNowSeconds + 90, kConfig).metrics_problem.empty());
}

TEST_CASE("a handful of batches is no basis for an estimate") {
  Measurement m = FluidJob{.demand = 8000}.steady(2, kNowSeconds);
  m.batches_in_window = 19;
  Estimate estimate = estimate_of(MakeJob("a").measures(m).obj(), kNowSeconds, kConfig);
  CHECK_FALSE(estimate.enough_batches);
  CHECK_FALSE(estimate.known);
  CHECK(estimate.starved);
  m.batches_in_window = 20;
  estimate = estimate_of(MakeJob("a").measures(m).obj(), kNowSeconds, kConfig);
  CHECK(estimate.known);
}

TEST_CASE("a trainer that computed nothing in the window is starved, and has no demand yet") {
  Measurement m = FluidJob{.demand = 8000}.steady(0, kNowSeconds);
  m.samples_per_second = m.compute_share = 0;
  m.wait_share = 1;
  const Estimate estimate = estimate_of(MakeJob("a").measures(m).obj(), kNowSeconds, kConfig);
  CHECK(estimate.starved);
  CHECK_FALSE(estimate.known);
}

TEST_CASE("counters that contradict each other make no demand") {
  struct Row {
    const char* situation;
    void (*contradict)(Measurement&);
  };
  const Row rows[] = {
      {"samples without computing", [](Measurement& m) { m.compute_share = 0, m.wait_share = 1; }},
      {"computing without samples", [](Measurement& m) { m.samples_per_second = 0; }},
      {"batches, and neither", [](Measurement& m) { m.samples_per_second = m.compute_share = 0, m.wait_share = 1; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Measurement m = FluidJob{.demand = 8000}.steady(2, kNowSeconds);
    row.contradict(m);
    const Estimate estimate = estimate_of(MakeJob("a").measures(m).obj(), kNowSeconds, kConfig);
    CHECK(estimate.metrics_problem.empty());
    CHECK_FALSE(estimate.enough_batches);
    CHECK_FALSE(estimate.known);
  }
}

TEST_CASE("what is known of a job whose own feeders suffice needs no remote worker to be measured") {
  const FluidJob text{.demand = 500, .local_rate = 1000};
  CHECK(estimate_of(MakeJob("a").measures(text).obj(), kNowSeconds, kConfig).confidence == Confidence::kMeasured);
  const FluidJob vision{.demand = 5000, .local_rate = 1000};
  CHECK(estimate_of(MakeJob("a").measures(vision).obj(), kNowSeconds, kConfig).confidence == Confidence::kAssumed);
}

TEST_CASE("what a feeder uses beyond its request comes and goes: it is not held") {
  Job job = MakeJob("a").measures(FluidJob{.demand = 8000, .local_cores = 4}).obj();
  job.hosts[0].request_millicores = 1000;
  CHECK(estimate_of(job, kNowSeconds, kConfig).local_held_cores == 1);
  job.hosts[0].request_millicores = 6000;
  CHECK(estimate_of(job, kNowSeconds, kConfig).local_held_cores == 6);
  job.placement = Placement::kRemote;
  CHECK(estimate_of(job, kNowSeconds, kConfig).local_held_cores == 0);
}

TEST_CASE("nothing known of a job without feeders of its own: as if one worker were the knee") {
  Measurement m = FluidJob{.demand = 8000}.steady(0, kNowSeconds);
  m.local.reset();
  const Job job = MakeJob("a").worker_millicores(2000).measures(m).local_millicores(0).obj();
  const Estimate estimate = estimate_of(job, kNowSeconds, kConfig);
  CHECK_FALSE(estimate.known);
  CHECK(estimate.supply_ratio(2, job, kConfig) == Approx(1 - estimate.wait_share + 0.77));
}

TEST_CASE("noise of 8 % around the truth hardly reaches the published knee, a lasting change does") {
  const FluidJob truth{.demand = 8000};
  Job job = MakeJob("a").measures(truth.steady(2, kNowSeconds)).obj();
  job.memory = estimate_of(job, kNowSeconds, kConfig).memory;
  for (int i = 1; i <= 40; ++i) {
    FluidJob noisy = truth;
    noisy.demand *= i % 2 ? 1.08 : 0.92;
    job.observation.measurement = later(noisy.steady(2, kNowSeconds), i);
    const Estimate estimate = estimate_of(job, kNowSeconds + 15 * i, kConfig);
    CHECK(estimate.measured_knee_cores == Approx(8).epsilon(i < 4 ? 0.05 : 0.03));
    job.memory = estimate.memory;
  }
  FluidJob doubled = truth;
  doubled.demand *= 2;
  double knee = 0.97 * 8;
  for (int i = 41; i <= 60; ++i) {
    job.observation.measurement = later(doubled.steady(2, kNowSeconds), i);
    const Estimate estimate = estimate_of(job, kNowSeconds + 15 * i, kConfig);
    CHECK(estimate.measured_knee_cores >= knee);
    knee = estimate.measured_knee_cores;
    job.memory = estimate.memory;
  }
  CHECK(knee == Approx(16).epsilon(0.1));
}

TEST_CASE("after some windows the smoothing goes a fifth of the way at a time") {
  Job job = MakeJob("a").measures(FluidJob{.demand = 8000}.steady(2, kNowSeconds)).obj();
  for (int i = 0; i < 5; ++i) {
    job.observation.measurement = later(FluidJob{.demand = 8000}.steady(2, kNowSeconds), i);
    job.memory = estimate_of(job, kNowSeconds + 15 * i, kConfig).memory;
  }
  job.observation.measurement = later(FluidJob{.demand = 16000}.steady(2, kNowSeconds), 5);
  CHECK(estimate_of(job, kNowSeconds + 75, kConfig).memory->knee_cores->recent == Approx(8 * std::pow(2, 0.2)));
}

TEST_CASE("one window's noise of a rate is averaged away, not believed") {
  const FluidJob truth{.demand = 8000};
  Job job = MakeJob("a").measures(truth.steady(4, kNowSeconds)).obj();
  for (int i = 0; i < 4; ++i) {
    job.observation.measurement = later(truth.steady(4, kNowSeconds), i);
    job.memory = estimate_of(job, kNowSeconds + 15 * i, kConfig).memory;
  }
  FluidJob noisy = truth;
  noisy.local_rate *= 1.2;
  noisy.remote_rate *= 0.8;
  job.observation.measurement = later(noisy.steady(4, kNowSeconds), 4);
  const Estimate estimate = estimate_of(job, kNowSeconds + 60, kConfig);
  CHECK(estimate.local_rate_per_core == Approx(1000));
  CHECK(estimate.remote_rate_per_core == Approx(770));
}

TEST_CASE("the same measurement is taken in once, however often it is decided upon") {
  Job job = MakeJob("a").measures(FluidJob{.demand = 8000}.steady(2, kNowSeconds)).obj();
  job.memory = estimate_of(job, kNowSeconds, kConfig).memory;
  job.observation.measurement = later(FluidJob{.demand = 16000}.steady(2, kNowSeconds));
  job.memory = estimate_of(job, kNowSeconds + 15, kConfig).memory;
  const EstimatorMemory once = *job.memory;
  for (int i = 0; i < 5; ++i) job.memory = estimate_of(job, kNowSeconds + 16, kConfig).memory;
  CHECK(*job.memory == once);
}

TEST_CASE("local CPU is counted on as far as it has shown itself") {
  const FluidJob starved{.demand = 8000, .local_rate = 1000, .local_cores = 1};
  const FluidJob idle{.demand = 1000, .local_rate = 1000, .local_cores = 4};
  struct Row {
    const char* situation;
    Job job;
    double want_cores;
  };
  Measurement distracted = starved.steady(2, kNowSeconds);
  distracted.local = SourceRate{400, 0.4};  // the rest of its core receives remote batches
  const Row rows[] = {
      {"starved: what it gives", MakeJob("a").measures(starved).obj(), 1.0},
      {"starved and busy with other things: still what it gives", MakeJob("a").measures(distracted).obj(), 0.4},
      {"idle: up to twice its use", MakeJob("a").measures(idle).obj(), 2.0},
      {"idle, limit nearer than that", MakeJob("a").measures(idle).local_millicores(1500).obj(), 1.5},
      {"idle, using more than its limit says", MakeJob("a").measures(idle).local_millicores(0).obj(), 1.0},
      {"placement Remote: nothing", MakeJob("a").placement(Placement::kRemote).measures(idle).obj(), 0.0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    CHECK(estimate_of(row.job, kNowSeconds, kConfig).local_cores == Approx(row.want_cores).epsilon(0.01));
  }
}

TEST_CASE("whole workers cover the cores, without one for rounding errors") {
  const Job job = MakeJob("a").worker_millicores(250).obj();
  CHECK(whole_workers(0, job) == 0);
  CHECK(whole_workers(-3, job) == 0);
  CHECK(whole_workers(0.01, job) == 1);
  CHECK(whole_workers(0.75, job) == 3);
  CHECK(whole_workers(0.1 + 0.65, job) == 3);
  CHECK(whole_workers(0.76, job) == 4);
  CHECK(whole_workers(1e300, job) == 1'000'000);
}

TEST_CASE("cores of workers that are ready since a given time") {
  const Job job = MakeJob("a")
                      .worker_millicores(500)
                      .worker({"old", "n", true, 0, 10, false})
                      .worker({"new", "n", true, 0, 50, false})
                      .worker({"starting", "n", false, 0, 0, false})
                      .worker({"draining", "n", true, 0, 10, true})
                      .obj();
  CHECK(ready_cores(job, 49) == 0.5);
  CHECK(ready_cores(job, 50) == 1.0);
}

}  // namespace
}  // namespace sluice::scheduler::testing
