// What goes wrong in a run, and what is left of the work.
#include <algorithm>
#include <cmath>

#include "scheduler/simulator/testing/worlds.h"
#include "scheduler/simulator/world/engine.h"
#include "scheduler/simulator/world/random.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;
using testing::run;
using testing::ScriptedPolicy;
using testing::small_cluster;
using testing::with;

TEST_CASE("A trainer whose node fails loses what came after its checkpoint, and no more") {
  struct Row {
    double fails_at, checkpoint, want_finish;
  };
  const Row rows[] = {
      {100, 30, 100 + 200 - 90}, {90, 30, 90 + 200 - 90},  // just saved
      {29, 30, 29 + 200},                                  // not saved yet
      {100, 1, 100 + 200 - 100},                           // saves all the time
      {100, 1e6, 100 + 200},                               // never saves
  };
  for (const Row& row : rows) {
    CAPTURE(row.fails_at, row.checkpoint);
    Cluster cluster = small_cluster();
    cluster.physics.checkpoint_seconds = row.checkpoint;
    const RunRecord record =
        run(cluster, {job(0, 8, 200, 1e-6)}, nullptr, with({{IncidentKind::kNodeDown, "gpu-0", row.fails_at, 500}}));
    CHECK(record.jobs[0].restarts == 1);
    CHECK(record.jobs[0].finish_seconds == Approx(row.want_finish));  // at once on the other host
    CHECK(record.jobs[0].start_seconds == 0);
  }
}

TEST_CASE("What a GPU computed and lost again was computed all the same") {
  Cluster cluster = small_cluster();
  cluster.physics.checkpoint_seconds = 1e6;
  const RunRecord record =
      run(cluster, {job(0, 8, 200, 1e-6)}, nullptr, with({{IncidentKind::kNodeDown, "gpu-0", 100, 500}}));
  CHECK(record.jobs[0].allocated_gpu_seconds == Approx(8 * 300));
  CHECK(record.jobs[0].busy_gpu_seconds == Approx(8 * 300));
}

TEST_CASE("Where no other node has room, a trainer waits until its own is repaired") {
  const RunRecord record = run(small_cluster(), {job(0, 8, 200, 1e-6), job(0, 8, 1000, 1e-6)}, nullptr,
                               with({{IncidentKind::kNodeDown, "gpu-0", 100, 500}}));
  CHECK(record.jobs[0].finish_seconds == Approx(600 + 200));
  CHECK(record.jobs[1].finish_seconds == Approx(1000));
}

TEST_CASE("A gang on two nodes stops when either fails") {
  for (const char* node : {"gpu-0", "gpu-1"}) {
    CAPTURE(node);
    const RunRecord record =
        run(small_cluster(), {job(0, 16, 200, 1e-6)}, nullptr, with({{IncidentKind::kNodeDown, node, 100, 500}}));
    CHECK(record.jobs[0].restarts == 1);
    CHECK(record.jobs[0].finish_seconds == Approx(600 + 200));
  }
}

TEST_CASE("Workers of a node that fails are lost; their trainer keeps its work and goes on slower") {
  const RunOptions options = with({{IncidentKind::kNodeDown, "cpu-0", 200, 1e6}});
  const auto ten = [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 10; };
  // One GPU host, full of its trainer: the workers have no other place.
  Cluster cluster = small_cluster();
  cluster.groups[0].count = 1;
  const RunRecord record = run(cluster, {job(0, 8, 400, 6)}, ten, options);
  const double alone = progress(0.5, 6), helped = progress((24 + 7.7) / 48, 6);
  CHECK(record.jobs[0].restarts == 0);
  CHECK(record.jobs[0].finish_seconds ==
        Approx(200 + (400 - 20 * alone - 180 * helped) / alone).epsilon(1e-6));  // 20 s until they were ready
}

TEST_CASE("Workers come back once the node does") {
  Cluster cluster = small_cluster();
  cluster.groups[0].count = 1;
  int started = 0;
  run(
      cluster, {job(0, 8, 800, 6)},
      [&](const scheduler::Job& job, scheduler::JobPlan& plan) {
        plan.workers = 10;
        started = static_cast<int>(
            std::count_if(job.workers.begin(), job.workers.end(), [](const auto& w) { return w.node == "cpu-0"; }));
      },
      with({{IncidentKind::kNodeDown, "cpu-0", 100, 200}}));
  CHECK(started == 10);
}

TEST_CASE("A drained node gives its idle CPU at once to trainers that may burst on it") {
  // The trainer's limit is the whole host; 12 cores of it are workers of another job, until the node is cordoned.
  Cluster cluster = small_cluster();
  cluster.groups.pop_back();
  cluster.physics.decision_period_seconds = 10000;
  RunOptions options = with({{IncidentKind::kCordon, "gpu-0", 500, 1e6}});
  options.timeline = true;
  const RunRecord record = run(
      cluster, {job(0, 4, 1000, 20), job(0, 8, 3000, 9)},
      [](const scheduler::Job& job, scheduler::JobPlan& plan) {
        if (job.gpus == 4) plan.local[0].limit_millicores = 24000;
        if (job.gpus == 8 && job.workers.empty()) {
          plan.workers = 12;
          plan.new_worker_nodes.assign(12, "gpu-0");
        }
        if (job.gpus == 8) plan.local[0].request_millicores = plan.local[0].limit_millicores = 24000;
      },
      options);
  double before = 0, after = 0;
  for (const TimelineStep& step : record.jobs[0].timeline) {
    if (step.at_seconds < 500) before = step.local_cores;
    if (step.at_seconds >= 500 && after == 0) after = step.local_cores;
  }
  CHECK(before == Approx(12).epsilon(0.01));
  CHECK(after == Approx(24).epsilon(0.01));
}

TEST_CASE("Trainers stay on a cordoned node, and no new one starts there") {
  const RunRecord record = run(small_cluster(), {job(0, 4, 300, 1e-6), job(50, 8, 100, 1e-6), job(60, 4, 100, 1e-6)},
                               nullptr, with({{IncidentKind::kCordon, "gpu-0", 40, 200}}));
  CHECK(record.jobs[0].restarts == 0);
  CHECK(record.jobs[0].finish_seconds == Approx(300));
  CHECK(record.jobs[1].start_seconds == Approx(50));
  CHECK(record.jobs[2].start_seconds == Approx(150));  // gpu-0 has room, but is cordoned
}

TEST_CASE("Two incidents on one node end with the later of them") {
  const RunRecord record =
      run(small_cluster(), {job(0, 16, 100, 1e-6)}, nullptr,
          with({{IncidentKind::kNodeDown, "gpu-0", 50, 300}, {IncidentKind::kNodeDown, "gpu-0", 100, 1000}}));
  CHECK(record.jobs[0].finish_seconds == Approx(1100 + 100));
}

TEST_CASE("Metrics that are lost twice come back when both outages are over") {
  int missing = 0, seen_between = 0;
  ScriptedPolicy policy;
  RunOptions options = with({{IncidentKind::kMetricsLost, "", 200, 300}, {IncidentKind::kMetricsLost, "", 300, 400}});
  std::vector<double> lost_at;
  class Watch : public scheduler::Policy {
   public:
    explicit Watch(std::vector<double>& lost) : lost_(lost) {}
    std::string_view name() const override { return "watch"; }
    scheduler::Plan decide(const scheduler::ClusterSnapshot& snapshot) override {
      for (const auto& job : snapshot.jobs)
        if (!job.observation.measurement && job.observation.missing_reason == "the metrics are away")
          lost_.push_back(snapshot.taken_at_seconds);
      return inner_.decide(snapshot);
    }

   private:
    ScriptedPolicy inner_;
    std::vector<double>& lost_;
  } watch(lost_at);
  REQUIRE(simulate(small_cluster(), {job(0, 1, 1000, 1)}, watch, options).ok());
  for (const double at : lost_at) {
    missing += 1;
    seen_between += at >= 500 && at < 700 ? 1 : 0;
    CHECK(at >= 200);
    CHECK(at < 700);
  }
  CHECK(missing > 30);
  CHECK(seen_between > 10);  // the first is over, the second is not
}

TEST_CASE("Nodes fail as often as the scenario says, whatever the policy does") {
  Cluster cluster = small_cluster();
  cluster.physics.node_failure_hours = 0.5;
  cluster.physics.node_repair_seconds = 60;
  cluster.physics.checkpoint_seconds = 1;
  const Workload one = {job(0, 16, 50000, 1e-6)};
  const int restarts = run(cluster, one).jobs[0].restarts;
  // Two hosts, each failing every half an hour and away for a minute: about 4 an hour for some 16 hours.
  CHECK(restarts > 35);
  CHECK(restarts < 90);
  const int busy =
      run(cluster, one, [](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 5; }).jobs[0].restarts;
  CHECK(busy == restarts);
}

TEST_CASE("Only spot nodes are reclaimed, and they come back after their own time") {
  Cluster cluster = small_cluster();
  cluster.groups = {{"gpu", 1, 8, 24, 0, false}, {"spot", 1, 0, 64, 0, true}};
  cluster.physics.spot_reclaim_hours = 0.2;
  cluster.physics.spot_return_seconds = 100;
  int without = 0, calls = 0;
  const RunRecord record =
      run(cluster, {job(0, 8, 20000, 6)}, [&](const scheduler::Job& job, scheduler::JobPlan& plan) {
        plan.workers = 10;
        const auto there = std::count_if(job.workers.begin(), job.workers.end(), [](const auto& w) { return w.ready; });
        without += there == 0 ? 1 : 0;
        ++calls;
      });
  CHECK(record.jobs[0].restarts == 0);  // its own host is no spot node
  CHECK(record.placement.workers_started > 50);
  CHECK(without > calls / 20);
  CHECK(without < calls / 2);
}

TEST_CASE("A spot node that is never reclaimed fails as any other, and is repaired as any other") {
  const auto restarts = [](bool spot, double repair, double spot_return) {
    Cluster cluster = small_cluster();
    cluster.groups = {{"gpu", 1, 8, 24, 0, spot}};
    cluster.physics.node_failure_hours = 1;
    cluster.physics.node_repair_seconds = repair;
    cluster.physics.spot_return_seconds = spot_return;
    cluster.physics.checkpoint_seconds = 1;
    const RunRecord record = run(cluster, {job(0, 8, 20000, 1e-6)});
    return std::pair(record.jobs[0].restarts, record.jobs[0].requeued_seconds);
  };
  const auto plain = restarts(false, 60, 5000);
  CHECK(plain.first > 1);
  CHECK(plain.second == Approx(60 * plain.first));
  CHECK(restarts(true, 60, 5000) == plain);
}

TEST_CASE("A trainer that goes back to its checkpoint goes back to the cost and the epoch of that time") {
  Cluster cluster = small_cluster();
  cluster.physics.epoch_seconds = 100;
  cluster.physics.evaluation_seconds = 10;
  cluster.physics.checkpoint_seconds = 90;
  // Fails 5 s after the first evaluation, at 105 s of work; goes back to 90 s and evaluates once more.
  const RunRecord record =
      run(cluster, {job(0, 8, 150, 1e-6)}, nullptr, with({{IncidentKind::kNodeDown, "gpu-0", 115, 500}}));
  CHECK(record.jobs[0].finish_seconds == Approx(115 + 60 + 10));

  cluster.physics.epoch_seconds = 0;
  cluster.physics.cost_change = 1;
  cluster.physics.cost_change_seconds = 100;
  RunOptions options = with({{IncidentKind::kNodeDown, "gpu-0", 1000, 5000}});
  options.timeline = true;
  const RunRecord changed = run(cluster, {job(0, 8, 400, 6)}, nullptr, options);
  const auto& steps = changed.jobs[0].timeline;
  double done = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i > 0 && steps[i].at_seconds >= 1000 && steps[i - 1].at_seconds < 1000)
      done = std::floor((done + steps[i - 1].speed * (1000 - steps[i - 1].at_seconds)) / 90) * 90;
    else if (i > 0)
      done += steps[i - 1].speed * (steps[i].at_seconds - steps[i - 1].at_seconds);
    const int stretch = static_cast<int>((done + 1e-3) / 100);
    CHECK(steps[i].wanted_cores == Approx(48 * cost_factor(cluster.physics, 1, 0, stretch)));
  }
}

}  // namespace
}  // namespace sluice::simulator
