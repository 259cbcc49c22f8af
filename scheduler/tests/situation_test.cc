// decide() in a loop with a fluid model, in the situations that a training job goes through.
#include <algorithm>
#include <cmath>
#include <string>

#include "scheduler/estimate/estimator.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/fluid.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

const FluidJob kTruth{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
constexpr int kNeeded = 11;  // workers: 1.2 (8 - 1) / 0.77
constexpr int kFed = 14;     // it hardly waits: neither starved nor sated

FluidLoop loop_with(const Job& job, const FluidJob& physics = kTruth) {
  FluidLoop loop({{"n1", 64000, 0, true}}, {}, {});
  loop.add(job, physics);
  return loop;
}

// The mean speed over so many seconds.
double mean_speed(FluidLoop& loop, int seconds) {
  double sum = 0;
  for (int i = 0; i < seconds; ++i) {
    loop.run(1);
    sum += loop.speed("a");
  }
  return sum / seconds;
}

TEST_CASE("a cold cache: samples cost four times as much for two minutes, then what they cost") {
  FluidJob cold = kTruth;
  cold.local_rate /= 4;
  cold.remote_rate /= 4;
  FluidLoop loop = loop_with(MakeJob("a").obj(), cold);
  loop.run(120);
  CHECK(loop.speed("a") >= 0.9);
  CHECK(loop.job("a").allocated_workers >= 3 * kNeeded);
  loop.physics("a") = kTruth;
  loop.run(600);
  CHECK(loop.speed("a") >= 0.94);
  CHECK(loop.job("a").allocated_workers <= kNeeded + 3);
}

TEST_CASE("a sample's cost that changes again and again is followed, and not at every window") {
  FluidLoop loop = loop_with(MakeJob("a").obj());
  loop.run(60);
  const int before = loop.changes("a");
  double sum = 0;
  for (int phase = 0; phase < 6; ++phase) {
    const double cost = phase % 2 == 0 ? 1.5 : 1;
    loop.physics("a").local_rate = kTruth.local_rate / cost;
    loop.physics("a").remote_rate = kTruth.remote_rate / cost;
    sum += mean_speed(loop, 300);
  }
  CHECK(sum / 6 >= 0.93);
  CHECK(loop.changes("a") - before <= 6 * 8);  // of 360 decisions
}

TEST_CASE("the memory of a job is wrong, by up to two standard deviations of 80 %") {
  // As after a restart of the operator beside a job that has changed meanwhile.
  for (const double factor : {std::exp(-1.6), std::exp(-0.8), std::exp(0.8), std::exp(1.6)}) {
    CAPTURE(factor);
    EstimatorMemory memory;
    memory.demand_samples_per_second = 8000;
    memory.local_rate_per_core = Tracked::starting_at(1000);
    memory.knee_cores = Tracked{.recent = 8 * factor, .mean = 8 * factor, .published = 8 * factor, .count = 40};
    FluidLoop loop = loop_with(MakeJob("a").memory(memory).obj());
    loop.run(120);
    CHECK(loop.speed("a") >= 0.9);
    CHECK(mean_speed(loop, 300) >= 0.94);
    loop.run(900);
    CHECK(loop.speed("a") >= 0.94);
    CHECK(loop.job("a").allocated_workers >= kNeeded - 1);
    CHECK(loop.job("a").allocated_workers <= kFed + 1);
  }
}

TEST_CASE("one observation, stale and noisy, is enough for a first step near the need") {
  struct Row {
    const char* situation;
    double demand, local_rate, age_seconds;
  };
  const Row rows[] = {
      {"exact and fresh", 1, 1, 0},
      {"80 s old", 1, 1, 80},
      {"demand 15 % too high, rate 15 % too low", 1.15, 0.85, 30},
      {"demand 15 % too low, rate 15 % too high", 0.85, 1.15, 30},
      {"both 15 % too high: they cancel", 1.15, 1.15, 30},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    FluidJob seen = kTruth;
    seen.demand *= row.demand;
    seen.local_rate *= row.local_rate;
    const Job job = MakeJob("a").measures(seen.steady(0, kNowSeconds - row.age_seconds)).obj();
    ClusterSnapshot snapshot = MakeSnapshot().node("n1", 64000).obj();
    snapshot.jobs.push_back(job);
    const double error = row.demand / row.local_rate;
    CHECK(plan_of(decide(snapshot, {}), "a").workers == Approx(1.2 * (8 * error - 1) / 0.77).margin(1.01));
  }
}

TEST_CASE("what a window may show of a job that is fed well, and what becomes of its workers") {
  struct Row {
    const char* situation;
    void (*happens)(Measurement&);
    int at_least, at_most;
  };
  const Row rows[] = {
      {"all is well", [](Measurement&) {}, kFed, kFed},
      {"an evaluation fills the window: no step",
       [](Measurement& m) {
         m.samples_per_second = m.compute_share = m.wait_share = m.batches_in_window = 0;
         m.local = SourceRate{0, 0};
         m.remote = SourceRate{0, 0};
       },
       kFed, kFed},
      {"an evaluation fills half of it",
       [](Measurement& m) {
         m.samples_per_second /= 2, m.compute_share /= 2, m.wait_share /= 2, m.batches_in_window /= 2;
         m.local = SourceRate{m.local->samples_per_second / 2, m.local->busy_cores / 2};
         m.remote = SourceRate{m.remote->samples_per_second / 2, m.remote->busy_cores / 2};
       },
       kFed, kFed},
      {"the end of an epoch: few batches, and the trainer waits for the first of the next",
       [](Measurement& m) {
         m.samples_per_second /= 20, m.compute_share /= 20, m.batches_in_window = 6;
         m.wait_share = 0.9;
       },
       kFed, kFed},
      {"a straggler: one rank of two waits for data half of its time, the other one for it",
       [](Measurement& m) {
         m.samples_per_second /= 2, m.compute_share = 0.5, m.wait_share = 0.25;
         m.local = SourceRate{m.local->samples_per_second / 2, m.local->busy_cores / 2};
         m.remote = SourceRate{m.remote->samples_per_second / 2, m.remote->busy_cores / 2};
       },
       kFed, 2 * kFed},
      {"a counter that was reset", [](Measurement& m) { m.samples_per_second = -400; }, kFed, kFed},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = MakeJob("a").holds(kFed, "n1").measures(kTruth).obj();
    job.memory = estimate_of(job, kNowSeconds, {}).memory;
    Measurement& m = *job.observation.measurement;
    m.window_end_seconds += 15;
    row.happens(m);
    ClusterSnapshot snapshot = MakeSnapshot().node("n1", 64000).obj();
    snapshot.taken_at_seconds = kNowSeconds + 15;
    snapshot.jobs.push_back(job);
    const JobPlan plan = plan_of(decide(snapshot, {}), "a");
    CHECK(plan.workers >= row.at_least);
    CHECK(plan.workers <= row.at_most);
    CHECK(plan.estimate.memory->knee_cores->published == Approx(8).epsilon(0.03));
  }
}

TEST_CASE("metrics are gone for ten minutes: nothing moves, and the first new window is believed again") {
  FluidLoop loop = loop_with(MakeJob("a").obj());
  loop.run(120);
  const int held = loop.job("a").allocated_workers;
  const int changes = loop.changes("a");
  loop.lose_metrics(true);
  for (int i = 0; i < 600; ++i) {
    loop.run(1);
    REQUIRE(loop.job("a").allocated_workers == held);
  }
  loop.physics("a").demand = 16000;
  loop.lose_metrics(false);
  loop.run(90);
  CHECK(loop.changes("a") > changes);
  CHECK(loop.speed("a") >= 0.9);
}

}  // namespace
}  // namespace sluice::scheduler::testing
