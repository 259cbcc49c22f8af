// A trainer whose node has failed: what the scheduler, the queue, the clocks and the reports make of it.
#include <algorithm>
#include <map>

#include "scheduler/simulator/report/figures.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;
using testing::run;
using testing::ScriptedPolicy;
using testing::small_cluster;

RunOptions failing(std::vector<Incident> incidents, bool timeline = false) {
  RunOptions options = testing::with(std::move(incidents));
  options.most_seconds = 1e5;
  options.timeline = timeline;
  return options;
}

// Remembers how the first job looked at every decision.
class Watching : public scheduler::Policy {
 public:
  explicit Watching(ScriptedPolicy::Wish wish = nullptr) : inner_(std::move(wish)) {}
  std::string_view name() const override { return "watching"; }
  scheduler::Plan decide(const scheduler::ClusterSnapshot& snapshot) override {
    for (const scheduler::Job& job : snapshot.jobs)
      if (job.id.name == "job-000000") seen[snapshot.taken_at_seconds] = job;
    return inner_.decide(snapshot);
  }
  // At the last decision up to a moment.
  const scheduler::Job& at(double seconds) const { return std::prev(seen.upper_bound(seconds))->second; }

  std::map<double, scheduler::Job> seen;

 private:
  ScriptedPolicy inner_;
};

TEST_CASE("A trainer that goes on at once on another node is shown there, with nothing of its old node") {
  Watching policy([](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 3; });
  const auto record =
      simulate(small_cluster(), {job(0, 8, 400, 6)}, policy, failing({{IncidentKind::kNodeDown, "gpu-0", 100, 1000}}));
  REQUIRE(record.ok());
  REQUIRE(policy.at(99).hosts.size() == 1);
  CHECK(policy.at(99).hosts[0].node == "gpu-0");
  CHECK(policy.at(99).workers.size() == 3);
  const scheduler::Job& moved = policy.at(100);
  REQUIRE(moved.hosts.size() == 1);
  CHECK(moved.running);
  CHECK(moved.hosts[0].node == "gpu-1");
  CHECK(moved.hosts[0].request_millicores == 24000);
  CHECK(moved.workers.empty());  // they went with their trainer
  CHECK(moved.allocated_workers == 0);
}

TEST_CASE("A trainer that finds no other node is shown as not running, until it runs again") {
  Watching policy([](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 3; });
  const auto record =
      simulate(small_cluster(), {job(5, 16, 400, 6)}, policy, failing({{IncidentKind::kNodeDown, "gpu-1", 100, 300}}));
  REQUIRE(record.ok());
  const scheduler::Job& waiting = policy.at(250);
  CHECK_FALSE(waiting.running);
  CHECK(waiting.hosts.empty());
  CHECK(waiting.workers.empty());
  CHECK_FALSE(waiting.observation.measurement);
  CHECK_FALSE(waiting.remaining_samples);
  const scheduler::Job& again = policy.at(400);
  CHECK(again.running);
  CHECK(again.hosts.size() == 2);
}

TEST_CASE("What is shown of a trainer's second life has nothing of its first") {
  Cluster cluster = small_cluster();
  cluster.physics.metrics_noise = 0;
  Watching policy;
  const auto record =
      simulate(cluster, {job(0, 8, 2000, 6)}, policy, failing({{IncidentKind::kNodeDown, "gpu-0", 600, 5000}}));
  REQUIRE(record.ok());
  const double speed = progress(0.5, 6);
  for (const auto& [now, seen] : policy.seen) {
    CAPTURE(now);
    const double life = now < 600 ? now : now - 600;
    const auto& m = seen.observation.measurement;
    REQUIRE(m.has_value() == (life > 30));  // the age of the metrics
    if (!m) continue;
    CHECK(m->window_seconds <= life - 30 + 1e-9);
    CHECK(m->samples_per_second == Approx(8 * 1000 * speed));
  }
}

TEST_CASE("A trainer that lost its node keeps its place in the queue, in whatever order jobs are listed") {
  // One host. The first listed arrives last; the last listed runs first, fails, and is still before the others.
  Cluster cluster = small_cluster();
  cluster.groups = {{"gpu", 1, 8, 24, 0, false}};
  const Workload jobs = {job(30, 8, 10, 1e-6), job(20, 8, 10, 1e-6), job(0, 8, 100, 1e-6)};
  const RunRecord record = run(cluster, jobs, nullptr, failing({{IncidentKind::kNodeDown, "gpu-0", 50, 10}}));
  CHECK(record.jobs[2].finish_seconds == Approx(60 + 100));
  CHECK(record.jobs[1].start_seconds == Approx(160));
  CHECK(record.jobs[0].start_seconds == Approx(170));
}

TEST_CASE("Two that lose one node queue up again by their arrival") {
  Cluster cluster = small_cluster();
  cluster.groups = {{"gpu", 1, 8, 24, 0, false}};
  // Between them they fill the host; the third, which arrived after both, has its turn after both.
  const Workload jobs = {job(0, 4, 100, 1e-6), job(10, 4, 20, 1e-6), job(5, 4, 100, 1e-6)};
  const RunRecord record = run(cluster, jobs, nullptr, failing({{IncidentKind::kNodeDown, "gpu-0", 50, 10}}));
  CHECK(record.jobs[0].finish_seconds == Approx(160));
  CHECK(record.jobs[2].finish_seconds == Approx(160));
  CHECK(record.jobs[1].start_seconds == Approx(160));
}

TEST_CASE("While a trainer has no node, no chart shows it as running, and the charts add up to the figures") {
  const Workload jobs = {job(0, 8, 300, 6), job(0, 8, 2000, 2)};
  const RunRecord record = run(
      small_cluster(), jobs, [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 4; },
      failing({{IncidentKind::kNodeDown, "gpu-0", 100, 500}}, true));
  double busy = 0, allocated = 0, cores = 0;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const auto& steps = record.jobs[job].timeline;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].running) continue;
      const double end = i + 1 < steps.size() ? steps[i + 1].at_seconds : record.jobs[job].finish_seconds;
      const double seconds = end - steps[i].at_seconds;
      busy += seconds * jobs[job].gpus * steps[i].speed;
      allocated += seconds * jobs[job].gpus;
      cores += seconds * (steps[i].local_cores + steps[i].remote_cores);
    }
  }
  CHECK(busy == Approx(record.jobs[0].busy_gpu_seconds + record.jobs[1].busy_gpu_seconds));
  CHECK(allocated == Approx(record.jobs[0].allocated_gpu_seconds + record.jobs[1].allocated_gpu_seconds));
  CHECK(cores == Approx(record.jobs[0].core_seconds + record.jobs[1].core_seconds));
  for (const TimelineStep& step : record.jobs[0].timeline)
    CHECK(step.running == (step.at_seconds < 100 || step.at_seconds >= 600));
}

TEST_CASE("The wait for another node is the queue's, and counts for completion only") {
  const Workload jobs = {job(0, 8, 300, 1e-6), job(0, 8, 2000, 1e-6)};
  const RunRecord calm = run(small_cluster(), jobs);
  struct Row {
    const char* situation;
    std::vector<Incident> incidents;
    double requeued, running;
  };
  const Row rows[] = {
      {"nothing fails", {}, 0, 300},
      {"away for 500 s, and 100 s of work lost", {{IncidentKind::kNodeDown, "gpu-0", 100, 500}}, 500, 400},
      {"twice", {{IncidentKind::kNodeDown, "gpu-0", 100, 50}, {IncidentKind::kNodeDown, "gpu-0", 200, 70}}, 120, 450},
      {"for no time at all", {{IncidentKind::kNodeDown, "gpu-0", 100, 0}}, 0, 400},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const RunRecord record = run(small_cluster(), jobs, nullptr, failing(row.incidents));
    CHECK(record.jobs[0].requeued_seconds == Approx(row.requeued).margin(1e-9));
    CHECK(record.jobs[0].running_seconds() == Approx(row.running));
    CHECK(record.jobs[0].allocated_gpu_seconds == Approx(8 * row.running));
    const Figures figures = figures_of(record, calm, jobs, small_cluster());
    CHECK(at(figures, Figure::kWorstAgainstStatic) == Approx(row.running / 300));
    CHECK(at(figures, Figure::kMeanJct) == Approx((row.running + row.requeued + 2000) / 2));
  }
}

TEST_CASE("A node that fails under workers takes them whatever they are doing, and its CPU is paid until then") {
  struct Row {
    const char* situation;
    double fails_at;
    double cores_paid;  // core-seconds of six workers on that node, and of local CPU
  };
  // Workers start in 20 s and warm up for 30 s. The whole host, 24 cores, is the trainer's own.
  const Row rows[] = {{"starting", 10, 6 * 10}, {"warming up", 35, 6 * 35}, {"at work", 200, 6 * 200}};
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster = small_cluster();
    cluster.groups[0].count = 1;
    cluster.physics.worker_warmup_seconds = 30;
    const RunRecord record = run(
        cluster, {job(0, 8, 400, 6)}, [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 6; },
        failing({{IncidentKind::kNodeDown, "cpu-0", row.fails_at, 1e6}}));
    CHECK(record.jobs[0].restarts == 0);
    CHECK(record.jobs[0].core_seconds == Approx(24 * record.jobs[0].finish_seconds + row.cores_paid));
    CHECK(record.jobs[0].busy_gpu_seconds == Approx(8 * 400));
  }
}

TEST_CASE("Workers that never become ready are paid for, bring nothing, and are counted") {
  Cluster cluster = small_cluster();
  cluster.physics.worker_startup_seconds = 1e6;
  const RunRecord record =
      run(cluster, {job(0, 8, 100, 6)}, [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 10; });
  const double seconds = 100 / progress(0.5, 6);
  CHECK(record.jobs[0].finish_seconds == Approx(seconds));
  CHECK(record.jobs[0].core_seconds == Approx(seconds * (24 + 10)));
  CHECK(record.jobs[0].workers_started == 10);
}

TEST_CASE("A node that fails while its trainer pauses takes the pause back with the work before it") {
  struct Row {
    const char* situation;
    double checkpoint, startup, fails_at, want;
  };
  // Epochs of 100 s, pauses of 50 s, 150 s of work: undisturbed it ends at 200 s.
  const Row rows[] = {
      {"in the pause, saved before the epoch's end: once more", 60, 0, 120, 120 + 40 + 50 + 50},
      {"in the pause, saved at the epoch's end: the pause is over", 100, 0, 120, 120 + 50},
      {"after the pause", 60, 0, 180, 180 + 30},
      {"while it starts", 60, 20, 10, 10 + 20 + 100 + 50 + 50},
      {"in the pause, and it takes time to start again", 60, 20, 140, 140 + 20 + 40 + 50 + 50},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster = small_cluster();
    cluster.physics.epoch_seconds = 100;
    cluster.physics.evaluation_seconds = 50;
    cluster.physics.checkpoint_seconds = row.checkpoint;
    cluster.physics.trainer_startup_seconds = row.startup;
    const RunRecord record =
        run(cluster, {job(0, 8, 150, 1e-6)}, nullptr, failing({{IncidentKind::kNodeDown, "gpu-0", row.fails_at, 1e6}}));
    CHECK(record.jobs[0].finish_seconds == Approx(row.want));
  }
}

TEST_CASE("A spot node that is reclaimed while its trainer pauses or starts costs no more than at any other time") {
  Cluster cluster = small_cluster();
  cluster.groups = {{"spot", 2, 8, 24, 0, true}, {"cpu", 1, 0, 64, 0, false}};
  Physics& p = cluster.physics;
  p.spot_reclaim_hours = 0.1;
  p.spot_return_seconds = 60;
  p.epoch_seconds = 50;
  p.evaluation_seconds = 40;
  p.trainer_startup_seconds = 15;
  p.checkpoint_seconds = 20;
  const RunRecord record = run(cluster, {job(0, 16, 2000, 4), job(0, 8, 1500, 4)},
                               [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 20; });
  for (const JobRecord& each : record.jobs) {
    CHECK(each.restarts > 3);
    CHECK(each.running_seconds() >= 0);
    CHECK(each.busy_gpu_seconds <= each.allocated_gpu_seconds);
  }
  // Every life but the last loses less than a checkpoint's worth of work.
  const JobRecord& gang = record.jobs[0];
  CHECK(gang.busy_gpu_seconds >= 16 * 2000 * (1 - 1e-9));
  CHECK(gang.busy_gpu_seconds <= 16 * (2000 + 20 * gang.restarts));
}

TEST_CASE("A node of a gang that is drained holds its rank; only a failure stops it") {
  const RunRecord record =
      run(small_cluster(), {job(0, 16, 300, 1e-6)}, nullptr,
          failing({{IncidentKind::kCordon, "gpu-1", 50, 400}, {IncidentKind::kNodeDown, "gpu-0", 100, 50}}));
  CHECK(record.jobs[0].restarts == 1);
  // Its own node is back at 150 s, but the drained one takes no job until 450 s.
  CHECK(record.jobs[0].finish_seconds == Approx(450 + 300));
}

}  // namespace
}  // namespace sluice::simulator
