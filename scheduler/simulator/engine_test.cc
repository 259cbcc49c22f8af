#include "scheduler/simulator/engine.h"

#include <algorithm>
#include <cmath>

#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;
using testing::ScriptedPolicy;
using testing::small_cluster;

RunRecord run(const Cluster& cluster, const Workload& workload, ScriptedPolicy::Wish wish = nullptr,
              const RunOptions& options = {}) {
  ScriptedPolicy policy(std::move(wish));
  auto record = simulate(cluster, workload, policy, options);
  REQUIRE(record.ok());
  CHECK(record->overcommitted_steps == 0);
  return std::move(record).value();
}

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

}  // namespace
}  // namespace sluice::simulator
