#include "scheduler/simulator/world/engine.h"

#include <algorithm>
#include <cmath>

#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;
using testing::run;
using testing::ScriptedPolicy;
using testing::small_cluster;

double seconds(const RunRecord& record, std::size_t job) {
  return record.jobs[job].finish_seconds - record.jobs[job].start_seconds;
}

TEST_CASE("Under a static share a job runs T / softmin(1, c / kappa)") {
  const Cluster cluster = small_cluster();
  for (const double knee : {0.5, 2.0, 3.0, 4.5, 12.0, 36.0}) {
    const RunRecord record = run(cluster, {job(10, 2, 1000, knee)});
    CHECK(record.jobs[0].start_seconds == 10);
    CHECK(seconds(record, 0) == Approx(1000 / progress(3 / knee, 6)).epsilon(1e-6));
  }
}

TEST_CASE("Without stalls a job runs its ideal time, and the busy GPU-seconds are the sum of g T") {
  Workload workload;
  double busy = 0;
  for (int i = 0; i < 30; ++i) workload.push_back(job(20 * i, 1 << (i % 4), 100 + 37 * i, 1e-6));
  const RunRecord record = run(small_cluster(), workload);
  for (std::size_t i = 0; i < workload.size(); ++i) {
    CHECK(seconds(record, i) == Approx(workload[i].ideal_seconds));
    CHECK(record.jobs[i].busy_gpu_seconds == Approx(workload[i].gpu_seconds()));
    busy += record.jobs[i].allocated_gpu_seconds - record.jobs[i].busy_gpu_seconds;
  }
  CHECK(busy == Approx(0).margin(1e-3));
}

TEST_CASE("Work is done exactly once however often grants change") {
  int calls = 0;
  const RunRecord record = run(small_cluster(), {job(0, 4, 2000, 9), job(100, 8, 500, 2)},
                               [&](const scheduler::Job& job, scheduler::JobPlan& plan) {
                                 plan.workers = (++calls * 7) % 30;
                                 plan.local[0].request_millicores = 1000 * (1 + calls % 12);
                                 plan.local[0].limit_millicores = plan.local[0].request_millicores * (1 + calls % 2);
                                 (void)job;
                               });
  CHECK(record.jobs[0].busy_gpu_seconds == Approx(4 * 2000));
  CHECK(record.jobs[1].busy_gpu_seconds == Approx(8 * 500));
  CHECK(record.placement.workers_started > 0);
}

TEST_CASE("A gang waits for its GPUs; a smaller one behind it passes") {
  const RunRecord record =
      run(small_cluster(), {job(0, 8, 100, 1e-6), job(1, 4, 50, 1e-6), job(2, 8, 10, 1e-6), job(3, 4, 10, 1e-6)});
  CHECK(record.jobs[1].start_seconds == 1);
  CHECK(record.jobs[2].start_seconds == Approx(51));
  CHECK(record.jobs[3].start_seconds == 3);
}

TEST_CASE("Trainers are placed where the fewest GPUs are free") {
  // 4 GPUs on one host, then 2: the same host, so that a gang of 8 still fits on the other.
  const RunRecord record = run(small_cluster(), {job(0, 4, 100, 1e-6), job(1, 2, 100, 1e-6), job(2, 8, 10, 1e-6)});
  CHECK(record.jobs[2].start_seconds == 2);
}

TEST_CASE("A gang larger than a host takes whole hosts, and one larger than the cluster is refused") {
  CHECK(seconds(run(small_cluster(), {job(0, 16, 100, 6)}), 0) == Approx(100 / progress(0.5, 6)).epsilon(1e-6));
  ScriptedPolicy policy;
  const auto refused = simulate(small_cluster(), {job(0, 17, 100, 6)}, policy, {});
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message(), Catch::Contains("17 GPUs"));
}

TEST_CASE("A worker delivers once it has started, and is worth its efficiency") {
  Cluster cluster = small_cluster();
  cluster.physics.worker_startup_seconds = 50;
  const RunRecord record =
      run(cluster, {job(0, 1, 400, 10)}, [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 10; });
  const double before = progress(0.3, 6), after = progress((3 + 0.77 * 10) / 10, 6);
  CHECK(seconds(record, 0) == Approx(50 + (400 - 50 * before) / after).epsilon(1e-6));
  CHECK(record.placement.workers_started == 10);
}

TEST_CASE("Trainers start at the ticks of a cluster that admits by the clock") {
  Cluster cluster = small_cluster();
  cluster.physics.admission_period_seconds = 10;
  const RunRecord record = run(cluster, {job(3, 8, 100, 1e-6), job(4, 8, 100, 1e-6), job(20, 8, 5, 1e-6)});
  CHECK(record.jobs[0].start_seconds == 10);
  CHECK(record.jobs[2].start_seconds == 110);
}

TEST_CASE("The same seed gives the same run, another seed another") {
  Cluster cluster = small_cluster();
  cluster.physics.node_failure_hours = 0.3;
  cluster.physics.cost_change = 0.4;
  cluster.physics.cost_change_seconds = 200;
  const Workload workload = {job(0, 4, 3000, 5), job(50, 8, 2000, 8), job(60, 2, 1000, 3)};
  const auto finish = [&](std::uint64_t seed) {
    RunOptions options;
    options.seed = seed;
    const RunRecord record = run(cluster, workload, nullptr, options);
    return std::vector<double>{record.jobs[0].finish_seconds, record.jobs[1].finish_seconds};
  };
  CHECK(finish(1) == finish(1));
  CHECK(finish(1) != finish(2));
}

TEST_CASE("A trainer whose node fails goes on from its last checkpoint") {
  Cluster cluster = small_cluster();
  cluster.physics.checkpoint_seconds = 30;
  RunOptions options;
  options.incidents = {{IncidentKind::kNodeDown, "gpu-0", 100, 500}};
  const RunRecord record = run(cluster, {job(0, 8, 200, 1e-6)}, nullptr, options);
  CHECK(record.jobs[0].restarts == 1);
  CHECK(record.jobs[0].finish_seconds == Approx(100 + 200 - 90));  // at once on the other host
  CHECK(record.jobs[0].start_seconds == 0);
}

TEST_CASE("Evaluations hold up training, and epochs count on") {
  Cluster cluster = small_cluster();
  cluster.physics.epoch_seconds = 100;
  cluster.physics.evaluation_seconds = 10;
  CHECK(seconds(run(cluster, {job(0, 1, 350, 1e-6)}), 0) == Approx(350 + 3 * 10));
}

TEST_CASE("A drained node's workers come back elsewhere") {
  RunOptions options;
  options.incidents = {{IncidentKind::kCordon, "cpu-0", 100, 1e6}};
  bool seen_on_cpu = false, seen_on_gpu = false;
  run(
      small_cluster(), {job(0, 1, 400, 12)},
      [&](const scheduler::Job& job, scheduler::JobPlan& plan) {
        plan.workers = 6;
        for (const scheduler::Worker& worker : job.workers) {
          seen_on_cpu |= worker.node == "cpu-0";
          seen_on_gpu |= worker.node.starts_with("gpu");
        }
      },
      options);
  CHECK(seen_on_cpu);
  CHECK(seen_on_gpu);
}

TEST_CASE("Lost metrics are said to be missing, and come back") {
  RunOptions options;
  options.incidents = {{IncidentKind::kMetricsLost, "", 200, 300}};
  int lost = 0, seen = 0;
  run(
      small_cluster(), {job(0, 1, 1000, 1)},
      [&](const scheduler::Job& job, scheduler::JobPlan&) {
        (job.observation.measurement ? seen : lost) += 1;
        if (!job.observation.measurement) CHECK_FALSE(job.observation.missing_reason.empty());
      },
      options);
  CHECK(lost >= 20);
  CHECK(seen >= 20);
}

TEST_CASE("An incident on a node that does not exist is refused; a run that never ends is ended") {
  ScriptedPolicy policy;
  RunOptions options;
  options.incidents = {{IncidentKind::kNodeDown, "nowhere", 1, 1}};
  CHECK_FALSE(simulate(small_cluster(), {job(0, 1, 1, 1)}, policy, options).ok());
  options.incidents.clear();
  options.most_seconds = 1000;
  const auto late = simulate(small_cluster(), {job(0, 1, 1e6, 1)}, policy, options);
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().code() == ErrorCode::kDeadlineExceeded);
}

TEST_CASE("The timeline tells every change of speed") {
  RunOptions options;
  options.timeline = true;
  const RunRecord record = run(
      small_cluster(), {job(0, 1, 400, 10)}, [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 5; },
      options);
  double work = 0;
  const auto& steps = record.jobs[0].timeline;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double end = i + 1 < steps.size() ? steps[i + 1].at_seconds : record.jobs[0].finish_seconds;
    work += steps[i].speed * (end - steps[i].at_seconds);
  }
  CHECK(work == Approx(400));
}

TEST_CASE("A worker that warms up delivers half at first: the closed form of three stretches") {
  Cluster cluster = small_cluster();
  cluster.physics.worker_startup_seconds = 30;
  cluster.physics.worker_warmup_seconds = 60;
  cluster.physics.worker_warmup_speed = 0.5;
  const RunRecord record =
      run(cluster, {job(0, 1, 400, 10)}, [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 10; });
  const double alone = progress(0.3, 6), warming = progress((3 + 3.85) / 10, 6), warm = progress((3 + 7.7) / 10, 6);
  CHECK(seconds(record, 0) == Approx(90 + (400 - 30 * alone - 60 * warming) / warm).epsilon(1e-6));
}

TEST_CASE("Workers that start while others are at work leave those at work") {
  Cluster cluster = small_cluster();
  cluster.physics.worker_startup_seconds = 40;
  double asked_at = -1;
  const RunRecord record = run(cluster, {job(0, 1, 400, 10)}, [&](const scheduler::Job& job, scheduler::JobPlan& plan) {
    plan.workers = job.workers.empty() ? 5 : 10;
    if (plan.workers == 10 && asked_at < 0) asked_at = 15;
  });
  const double none = progress(0.3, 6), five = progress((3 + 3.85) / 10, 6), ten = progress((3 + 7.7) / 10, 6);
  CHECK(seconds(record, 0) == Approx(55 + (400 - 40 * none - 15 * five) / ten).epsilon(1e-6));
}

TEST_CASE("A trainer that takes time to start holds its GPUs and does nothing") {
  Cluster cluster = small_cluster();
  cluster.physics.trainer_startup_seconds = 45;
  const RunRecord record = run(cluster, {job(0, 8, 200, 1e-6)});
  CHECK(seconds(record, 0) == Approx(245));
  CHECK(record.jobs[0].allocated_gpu_seconds == Approx(8 * 245));
  CHECK(record.jobs[0].busy_gpu_seconds == Approx(8 * 200));
}

TEST_CASE("Epochs and pauses, for jobs of any length") {
  struct Row {
    double ideal, epoch, pause, want;
  };
  const Row rows[] = {
      {350, 100, 10, 380},  // after 100, 200 and 300 s
      {300, 100, 10, 320},  // none after the last epoch: it is the end
      {99, 100, 10, 99},    // less than one
      {350, 0, 10, 350},    // no epochs, no pauses
      {350, 100, 0, 350},   // pauses of no length
      {1000, 1, 0.5, 1499.5},
  };
  for (const Row& row : rows) {
    CAPTURE(row.ideal, row.epoch, row.pause);
    Cluster cluster = small_cluster();
    cluster.physics.epoch_seconds = row.epoch;
    cluster.physics.evaluation_seconds = row.pause;
    CHECK(seconds(run(cluster, {job(0, 1, row.ideal, 1e-6)}), 0) == Approx(row.want));
  }
}

TEST_CASE("While a trainer evaluates it neither computes nor waits for data, as its exporter shows") {
  Cluster cluster = small_cluster();
  cluster.physics.epoch_seconds = 200;
  cluster.physics.evaluation_seconds = 100;
  cluster.physics.metrics_noise = 0;
  cluster.physics.metrics_age_seconds = 0;
  double least = 1, most_wait = 0;
  run(cluster, {job(0, 1, 1000, 1e-6)}, [&](const scheduler::Job& job, scheduler::JobPlan&) {
    const auto& m = job.observation.measurement;
    if (!m || m->window_seconds < 15) return;
    least = std::min(least, m->compute_share + m->wait_share);
    most_wait = std::max(most_wait, m->wait_share);
  });
  CHECK(least < 0.8);
  CHECK(most_wait == Approx(0).margin(1e-6));
}

TEST_CASE("The first epoch reads from the storage, later ones from the cache") {
  Cluster cluster = small_cluster();
  cluster.physics.storage_gbps = 2;
  cluster.physics.storage_share_of_network = 1;
  cluster.physics.epoch_seconds = 100;
  // 8 GPUs at 1 Gb/s want four times what the storage gives.
  const double starved = progress(0.25, 6), full = progress(24 / (8 * 0.1), 6);
  for (const double cached : {1.0, 0.0}) {
    CAPTURE(cached);
    cluster.physics.cached_after_first_epoch = cached;
    const double want = cached == 1 ? 100 / starved + 300 / full : 400 / starved;
    CHECK(seconds(run(cluster, {job(0, 8, 400, 0.1, 1)}), 0) == Approx(want).epsilon(0.01));
  }
}

TEST_CASE("Two that read at once share the storage, and one that ends leaves it to the other") {
  Cluster cluster = small_cluster();
  cluster.physics.storage_gbps = 4;
  cluster.physics.storage_share_of_network = 1;
  // 4 Gb/s each at full speed: half speed together, full speed alone.
  const RunRecord record = run(cluster, {job(0, 4, 100, 0.1, 1), job(0, 4, 300, 0.1, 1)});
  const double half = progress(0.5, 6);
  CHECK(record.jobs[0].finish_seconds == Approx(100 / half).epsilon(0.01));
  CHECK(record.jobs[1].finish_seconds == Approx(100 / half + 200).epsilon(0.01));
}

TEST_CASE("A cost that changes is followed to the second by the speed") {
  Cluster cluster = small_cluster();
  cluster.physics.cost_change = 0.7;
  cluster.physics.cost_change_seconds = 50;
  const RunRecord record = run(cluster, {job(0, 8, 330, 4)});
  double want = 0;
  for (int stretch = 0; stretch < 7; ++stretch)
    want += std::min(50.0, 330 - 50.0 * stretch) / progress(3 / (4 * cost_factor(cluster.physics, 1, 0, stretch)), 6);
  CHECK(seconds(record, 0) == Approx(want).epsilon(1e-6));
}

TEST_CASE("Decisions come at their period, at starts and ends, and seldom while nothing changes if it is said so") {
  Cluster cluster = small_cluster();
  cluster.physics.decision_period_seconds = 10;
  std::vector<double> at;
  class Clock : public scheduler::Policy {
   public:
    explicit Clock(std::vector<double>& at) : at_(at) {}
    std::string_view name() const override { return "clock"; }
    scheduler::Plan decide(const scheduler::ClusterSnapshot& snapshot) override {
      at_.push_back(snapshot.taken_at_seconds);
      return inner_.decide(snapshot);
    }

   private:
    ScriptedPolicy inner_;
    std::vector<double>& at_;
  };
  const auto decided = [&](double most) {
    at.clear();
    cluster.physics.decision_period_most_seconds = most;
    Clock clock(at);
    REQUIRE(simulate(cluster, {job(3, 4, 497, 1e-6), job(253, 4, 10, 1e-6)}, clock, {}).ok());
    return at;
  };
  const std::vector<double> steady = decided(0);
  CHECK(steady.size() == 50 + 3);  // at 10, 20, ... 490 and 500, and at 3, 253 and 263 s
  for (const double moment : {3.0, 10.0, 20.0, 253.0, 263.0})
    CHECK(std::count(steady.begin(), steady.end(), moment) == 1);
  const std::vector<double> seldom = decided(80);
  CHECK(seldom.size() < steady.size() / 2);
  for (const double moment : {3.0, 253.0, 263.0}) CHECK(std::count(seldom.begin(), seldom.end(), moment) == 1);
  for (std::size_t i = 1; i < seldom.size(); ++i) CHECK(seldom[i] - seldom[i - 1] <= 80 + 1e-9);
  // An arrival puts the period back to 10 s, although no grant changes: after 253 s comes 260 s.
  CHECK(*std::find(seldom.begin(), seldom.end(), 253.0) == 253.0);
  CHECK(*std::next(std::find(seldom.begin(), seldom.end(), 263.0)) == 270.0);
}

TEST_CASE("The first moment at nine tenths of full speed is remembered, through all that comes after") {
  int calls = 0;
  const RunRecord record = run(small_cluster(), {job(7, 1, 400, 10), job(7, 1, 100, 1e-6), job(7, 1, 50, 30)},
                               [&](const scheduler::Job& job, scheduler::JobPlan& plan) {
                                 if (job.id.name == "job-000000") plan.workers = ++calls < 10 ? 15 : 0;
                               });
  CHECK(record.jobs[0].fast_seconds == Approx(27));  // workers take 20 s
  CHECK(record.jobs[1].fast_seconds == 7);           // at once
  CHECK(record.jobs[2].fast_seconds == -1);          // never
}

TEST_CASE("Many jobs that arrive at once, and one at a time, are all done, in any order of the list") {
  Workload jobs;
  for (int i = 0; i < 60; ++i) jobs.push_back(job(i % 2 == 0 ? 0 : 500 - 7 * i, 1 + i % 8, 20 + 3 * i, 0.5 + i % 5));
  const RunRecord record = run(small_cluster(), jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    CHECK(record.jobs[i].start_seconds >= jobs[i].arrival_seconds);
    CHECK(record.jobs[i].busy_gpu_seconds == Approx(jobs[i].gpu_seconds()));
  }
}

}  // namespace
}  // namespace sluice::simulator
