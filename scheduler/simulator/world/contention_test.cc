// What jobs that share a host, a storage or a network do to each other in the course of a run.
#include <algorithm>
#include <cmath>

#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;
using testing::run;
using testing::small_cluster;

// Of one job's timeline, at a moment.
const TimelineStep& step_at(const RunRecord& record, std::size_t job, double seconds) {
  const auto& steps = record.jobs[job].timeline;
  const auto later = std::find_if(steps.begin(), steps.end(), [&](const auto& s) { return s.at_seconds > seconds; });
  return *std::prev(later);
}

TEST_CASE("A job that evaluates or starts leaves the storage to the others") {
  struct Row {
    const char* situation;
    double startup, epoch, evaluation;
  };
  const Row rows[] = {{"no pauses", 0, 0, 0}, {"they evaluate, in turns", 0, 50, 40}, {"they start late", 30, 0, 0}};
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster = small_cluster();
    Physics& p = cluster.physics;
    p.storage_gbps = 4;
    p.storage_share_of_network = 1;
    p.cached_after_first_epoch = 0;
    p.trainer_startup_seconds = row.startup;
    p.epoch_seconds = row.epoch;
    p.evaluation_seconds = row.evaluation;
    RunOptions options;
    options.timeline = true;
    // 4 Gb/s each at full speed. The second arrives later, so that its pauses are at other times.
    const RunRecord record = run(cluster, {job(0, 4, 200, 0.1, 1), job(35, 4, 200, 0.1, 1)}, nullptr, options);
    const double alone = progress(1e9, 6), half = progress(0.5, 6);
    for (double now = 36; now < std::min(record.jobs[0].finish_seconds, record.jobs[1].finish_seconds); now += 3.7) {
      CAPTURE(now);
      const double first = step_at(record, 0, now).speed, second = step_at(record, 1, now).speed;
      if (first > 0 && second > 0) {
        CHECK(first == Approx(half));
        CHECK(second == Approx(half));
      } else {
        CHECK(std::max(first, second) == Approx(first + second > 0 ? alone : 0));
      }
    }
  }
}

TEST_CASE("A job that lacks CPU asks the storage for what it can use, and leaves the rest") {
  struct Row {
    const char* situation;
    double knee;       // of the first; its share is 3 cores per GPU
    double want;       // speed of the first, if the second takes what is left
    double want_next;  // speed of the second, which has CPU enough
  };
  // 6 Gb/s for two that read 4 each at full speed.
  const Row rows[] = {
      {"both have CPU enough", 0.1, progress(0.75, 6), progress(0.75, 6)},
      {"the first can use a quarter", 12, progress(0.25, 6), 1},
      {"the first can use three fifths", 5, progress(0.6, 6), progress(0.9, 6)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster = small_cluster();
    cluster.physics.storage_gbps = 6;
    cluster.physics.storage_share_of_network = 1;
    RunOptions options;
    options.timeline = true;
    const RunRecord record = run(cluster, {job(0, 4, 500, row.knee, 1), job(0, 4, 500, 0.001, 1)}, nullptr, options);
    CHECK(step_at(record, 0, 100).speed == Approx(row.want));
    CHECK(step_at(record, 1, 100).speed == Approx(row.want_next));
  }
}

TEST_CASE("When a job's samples change their cost, neighbours that burst feel it at once") {
  // Both may use the whole host. Decisions are far apart, so that nothing but the physics can tell the neighbour.
  Cluster cluster = small_cluster();
  cluster.groups = {{"gpu", 1, 8, 24, 0, false}};
  cluster.physics.decision_period_seconds = 1e6;
  cluster.physics.cost_change = 1;
  cluster.physics.cost_change_seconds = 300;
  RunOptions options;
  options.timeline = true;
  const auto burst = [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.local[0].limit_millicores = 24000; };
  int moments_of_need = 0;
  for (options.seed = 1; options.seed <= 4; ++options.seed) {
    const RunRecord record = run(cluster, {job(0, 4, 3000, 20), job(0, 4, 3000, 2)}, burst, options);
    const double end = std::min(record.jobs[0].finish_seconds, record.jobs[1].finish_seconds);
    for (double now = 0.5; now < end; now += 31) {
      const TimelineStep &first = step_at(record, 0, now), &second = step_at(record, 1, now);
      CAPTURE(options.seed, now);
      // What both keep busy is never more than the host has.
      const double busy = first.speed * first.wanted_cores + second.speed * second.wanted_cores;
      CHECK(busy <= 24 * (1 + 1e-6));
      // And where one wants more than it has, nothing is left over that it could use.
      const bool starved = first.local_cores < 0.999 * std::min(24.0, 1.5 * first.wanted_cores) ||
                           second.local_cores < 0.999 * std::min(24.0, 1.5 * second.wanted_cores);
      if (starved) CHECK(busy >= 24 * 0.99);
      moments_of_need += starved ? 1 : 0;
    }
  }
  CHECK(moments_of_need > 50);
}

TEST_CASE("When workers come to a host its trainer suffers at once, and recovers when they go") {
  Cluster cluster = small_cluster();
  cluster.groups = {{"gpu", 1, 8, 24, 0, false}};
  cluster.physics.interference = 0.4;
  cluster.physics.decision_period_seconds = 100;
  RunOptions options;
  options.timeline = true;
  int calls = 0;
  const RunRecord record = run(
      cluster, {job(0, 4, 1000, 1e-6), job(0, 2, 1000, 1e-6)},
      [&](const scheduler::Job& each, scheduler::JobPlan& plan) {
        if (each.gpus == 2) plan.workers = (calls++ / 3) % 2 == 1 ? 6 : 0;  // the other trainer's, on their common host
      },
      options);
  // 18 of 24 cores prepare data, with the workers all of them.
  double least = 1, most = 0;
  for (const TimelineStep& step : record.jobs[0].timeline) {
    least = std::min(least, step.speed);
    most = std::max(most, step.speed);
  }
  CHECK(most == Approx(1 - 0.4 * 18 / 24));
  CHECK(least == Approx(1 - 0.4));
}

TEST_CASE("A feeder that left its host to workers waits until they have started, and then lives from them") {
  Cluster cluster = small_cluster();
  cluster.groups = {{"gpu", 1, 8, 24, 0, false}};
  const RunRecord record = run(cluster, {job(0, 8, 100, 6)}, [](const scheduler::Job&, scheduler::JobPlan& plan) {
    plan.local[0].request_millicores = plan.local[0].limit_millicores = 0;
    plan.workers = 24;
  });
  CHECK(record.jobs[0].finish_seconds == Approx(20 + 100 / progress(24 * 0.77 / 48, 6)));
  CHECK(record.jobs[0].busy_gpu_seconds == Approx(8 * 100));
}

TEST_CASE("Who waits for the workers of a job that has ended gets their room when they have drained") {
  for (const double drain : {0.0, 40.0}) {
    CAPTURE(drain);
    Cluster cluster = small_cluster();
    cluster.physics.worker_drain_seconds = drain;
    cluster.physics.worker_startup_seconds = 0;
    RunOptions options;
    options.timeline = true;
    // The first takes the node without GPUs. What its own host has left when it ends is too little for the second.
    const RunRecord record = run(
        cluster, {job(0, 8, 100, 1), job(1, 8, 1000, 30)},
        [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 64; }, options);
    CHECK(record.jobs[0].finish_seconds == Approx(100).margin(1));
    double all_there = 0;
    for (const TimelineStep& step : record.jobs[1].timeline)
      if (all_there == 0 && step.remote_cores >= 64) all_there = step.at_seconds;
    // At the end of the drain, or at the decision after it.
    CHECK(all_there >= record.jobs[0].finish_seconds + drain);
    CHECK(all_there <= record.jobs[0].finish_seconds + drain + 15);
    CHECK(record.jobs[1].workers_started == 64);
  }
}

}  // namespace
}  // namespace sluice::simulator
