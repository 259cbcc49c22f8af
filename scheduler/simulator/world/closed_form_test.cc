// What can be said about a run without running it, for every policy: docs/simulator.md lists these forms.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler/simulator/report/experiment.h"
#include "scheduler/simulator/report/lower_bound.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;

// Jobs of all sizes and appetites, more than fit at once.
Workload mixed_jobs() {
  Workload jobs;
  for (int i = 0; i < 20; ++i)
    jobs.push_back(job(45 * i, 1 << (i % 4), 150 + 70 * (i % 9), i % 3 == 0 ? 0.4 : 1.5 + 2.5 * (i % 6), 0.5));
  return jobs;
}

RunRecord run(const std::string& policy, const Cluster& cluster, const Workload& jobs, std::uint64_t seed = 1) {
  RunOptions options;
  options.seed = seed;
  auto record = run_policy(policy, cluster, jobs, options);
  REQUIRE(record.ok());
  return std::move(record).value();
}

TEST_CASE("Under static every job runs T / softmin(1, c / kappa), whatever runs beside it") {
  const Cluster cluster = testing::small_cluster();
  const Workload jobs = mixed_jobs();
  const RunRecord record = run("static", cluster, jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const double want = jobs[i].ideal_seconds / progress(3 / jobs[i].knee_cores_per_gpu, 6);
    CHECK(record.jobs[i].finish_seconds - record.jobs[i].start_seconds == Approx(want).epsilon(0.01));
  }
}

TEST_CASE("Without stalls every job runs T, and the mean completion is T and the queue") {
  const Workload jobs = mixed_jobs();
  const RunRecord record = run("no-stall", testing::small_cluster(), jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    CHECK(record.jobs[i].finish_seconds - record.jobs[i].start_seconds == Approx(jobs[i].ideal_seconds).epsilon(1e-6));
}

TEST_CASE("Whatever a policy does, the work is done once, no node is over-committed and no job outruns its GPUs") {
  const Cluster cluster = testing::small_cluster();
  const Workload jobs = mixed_jobs();
  double work = 0;
  for (const JobSpec& spec : jobs) work += spec.gpu_seconds();
  for (const std::string& policy : all_policies()) {
    CAPTURE(policy);
    const RunRecord record = run(policy, cluster, jobs);
    double busy = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const JobRecord& each = record.jobs[i];
      busy += each.busy_gpu_seconds;
      CHECK(each.start_seconds >= jobs[i].arrival_seconds);
      CHECK(each.finish_seconds - each.start_seconds >= jobs[i].ideal_seconds * (1 - 1e-6));
      CHECK(each.allocated_gpu_seconds == Approx((each.finish_seconds - each.start_seconds) * jobs[i].gpus));
      CHECK(each.restarts == 0);
    }
    CHECK(busy == Approx(work).epsilon(1e-6));
    CHECK(record.overcommitted_steps == 0);
    CHECK(record.makespan_seconds >= work / cluster.gpus());
  }
}

// Physics in which everything that can happen does.
Cluster rough_cluster() {
  Cluster cluster = testing::small_cluster();
  for (NodeGroup& group : cluster.groups) group.network_gbps = 20;
  cluster.groups[1].spot = true;
  Physics& p = cluster.physics;
  p.local_exponent = 0.9;
  p.interference = 0.1;
  p.worker_warmup_seconds = 20;
  p.worker_drain_seconds = 10;
  p.trainer_startup_seconds = 5;
  p.storage_gbps = 40;
  p.epoch_seconds = 200;
  p.evaluation_seconds = 8;
  p.cost_change = 0.4;
  p.cost_change_seconds = 120;
  p.node_failure_hours = 1;
  p.node_repair_seconds = 90;
  p.checkpoint_seconds = 60;
  p.spot_reclaim_hours = 0.5;
  p.spot_return_seconds = 200;
  p.busy_cpu_error = 0.5;
  p.metrics_noise = 0.2;
  return cluster;
}

TEST_CASE("In rough weather, too: nothing is over-committed, no job is faster than ideal, the bound holds") {
  const Cluster cluster = rough_cluster();
  const Workload jobs = mixed_jobs();
  for (const std::uint64_t seed : {1, 2}) {
    double horizon = 0;
    std::vector<double> completions;
    for (const char* policy : {"static", "burst", "hpa-everywhere", "cachew-2", "synergy", "sluice", "perfect"}) {
      CAPTURE(policy, seed);
      const RunRecord record = run(policy, cluster, jobs, seed);
      CHECK(record.overcommitted_steps == 0);
      double sum = 0;
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        CHECK(record.jobs[i].finish_seconds - record.jobs[i].start_seconds >= jobs[i].ideal_seconds);
        CHECK(record.jobs[i].busy_gpu_seconds >= jobs[i].gpu_seconds() * (1 - 1e-6));
        CHECK(record.jobs[i].busy_gpu_seconds <= record.jobs[i].allocated_gpu_seconds * (1 + 1e-9));
        sum += record.jobs[i].finish_seconds - jobs[i].arrival_seconds;
      }
      completions.push_back(sum / static_cast<double>(jobs.size()));
      horizon = std::max(horizon, record.makespan_seconds);
    }
    const auto least = least_mean_completion(cluster, jobs, seed, 1.01 * horizon);
    REQUIRE(least.ok());
    for (const double completion : completions) CHECK(completion >= *least);
  }
}

TEST_CASE("Every option of the physics costs time or is without effect, and none brings any") {
  // A fixed allotment, so that the physics alone make the difference.
  const auto seconds = [](const Physics& physics) {
    Cluster cluster = testing::small_cluster();
    for (NodeGroup& group : cluster.groups) group.network_gbps = 30;
    cluster.physics = physics;
    testing::ScriptedPolicy policy([](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 20; });
    const auto record = simulate(cluster, {job(0, 8, 1000, 6, 3)}, policy, {});
    REQUIRE(record.ok());
    return record->jobs[0].finish_seconds;
  };
  const double plain = seconds({});
  struct Row {
    const char* option;
    void (*set)(Physics&);
  };
  const Row rows[] = {
      {"a softer knee", [](Physics& p) { p.softmin_exponent = 3; }},
      {"remote cores are worth less", [](Physics& p) { p.remote_efficiency = 0.5; }},
      {"local cores do not add up", [](Physics& p) { p.local_exponent = 0.8; }},
      {"nor do they beyond a knee", [](Physics& p) { p.local_flatter_above_cores = 4; }},
      {"the trainer suffers from its busy host", [](Physics& p) { p.interference = 0.1; }},
      {"workers start late", [](Physics& p) { p.worker_startup_seconds = 200; }},
      {"workers are slow at first", [](Physics& p) { p.worker_warmup_seconds = 300; }},
      {"trainers start late", [](Physics& p) { p.trainer_startup_seconds = 30; }},
      {"the storage is slow", [](Physics& p) { p.storage_gbps = 2; }},
      {"evaluations", [](Physics& p) { p.epoch_seconds = 100, p.evaluation_seconds = 10; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.option);
    Physics physics;
    row.set(physics);
    CHECK(seconds(physics) > plain + 1);
  }
}

TEST_CASE(
    "No-stall is the limit under every option of the physics: no policy is faster, and a job that is fed does not "
    "wait") {
  struct Row {
    const char* option;
    void (*set)(Physics&);
    double pauses;  // of the first job, which has all that it wants
  };
  const Row rows[] = {
      {"plain", [](Physics&) {}, 0},
      {"a storage that starves everybody", [](Physics& p) { p.storage_gbps = 0.2; }, 0},
      {"trainers that suffer from busy hosts", [](Physics& p) { p.interference = 0.3; }, 0},
      {"local cores that do not add up", [](Physics& p) { p.local_exponent = 0.7; }, 0},
      {"trainers that start late", [](Physics& p) { p.trainer_startup_seconds = 40; }, 40},
      {"evaluations", [](Physics& p) { p.epoch_seconds = 100, p.evaluation_seconds = 10; }, 10},
  };
  Workload jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(job(30 * i, 1 << (i % 4), 150 + 70 * i, 0.5 + 2 * i, 0.5));
  for (const Row& row : rows) {
    Cluster cluster = testing::small_cluster();
    row.set(cluster.physics);
    const RunRecord limit = run("no-stall", cluster, jobs);
    CAPTURE(row.option);
    CHECK(limit.jobs[0].finish_seconds == Approx(150 + row.pauses));
    for (const char* policy : {"static", "burst", "synergy", "sluice", "perfect"}) {
      CAPTURE(policy);
      const RunRecord record = run(policy, cluster, jobs);
      for (std::size_t i = 0; i < jobs.size(); ++i)
        CHECK(record.jobs[i].running_seconds() >= limit.jobs[i].running_seconds() * (1 - 1e-9));
    }
  }
}

TEST_CASE("The bound of the gain holds where cores do not add up, hosts differ, feeders are fixed or trainers suffer") {
  struct Row {
    const char* situation;
    void (*set)(Cluster&, JobSpec&);
  };
  const Row rows[] = {
      {"plain", [](Cluster&, JobSpec&) {}},
      {"cores that do not add up", [](Cluster& c, JobSpec&) { c.physics.local_exponent = 0.7; }},
      {"less and less", [](Cluster& c, JobSpec&) { c.physics.local_flatter_above_cores = 4; }},
      {"a poor host first, and a rich one",
       [](Cluster& c, JobSpec&) {
         c.groups.insert(c.groups.begin(), NodeGroup{"poor", 1, 8, 4, 0, false});
       }},
      {"a feeder of fixed CPU", [](Cluster&, JobSpec& spec) { spec.local_cores = 1; }},
      {"a trainer that suffers", [](Cluster& c, JobSpec&) { c.physics.interference = 0.4; }},
      {"a gang on all hosts", [](Cluster&, JobSpec& spec) { spec.gpus = 16; }},
  };
  for (const double knee : {1.0, 4.0, 9.0}) {
    for (const Row& row : rows) {
      CAPTURE(row.situation, knee);
      Cluster cluster = testing::small_cluster();
      JobSpec spec = job(0, 8, 1000, knee);
      row.set(cluster, spec);
      cluster.physics.worker_startup_seconds = 0;
      const RunRecord base = run("static", cluster, {spec});
      testing::ScriptedPolicy generous([](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = 60; });
      const auto best = simulate(cluster, {spec}, generous, {});
      REQUIRE(best.ok());
      const Bound bound = bound_of({spec}, cluster);
      const double gain = base.jobs[0].finish_seconds / best->jobs[0].finish_seconds;
      CHECK(gain <= bound.mean_slowdown * (1 + 1e-9));
      CHECK(base.jobs[0].finish_seconds / 1000 <= bound.mean_slowdown * (1 + 1e-9));
      CHECK(gain <= bound.best_single_job * 1.15);  // of a hard knee; a soft one is an eighth slower at it
    }
  }
}

TEST_CASE("A remote core is worth its efficiency: the closed form of local and remote supply") {
  for (const double efficiency : {0.3, 0.77, 1.2}) {
    for (const int workers : {0, 4, 16, 40}) {
      CAPTURE(efficiency, workers);
      Cluster cluster = testing::small_cluster();
      cluster.physics.remote_efficiency = efficiency;
      cluster.physics.worker_startup_seconds = 0;
      testing::ScriptedPolicy policy([&](const scheduler::Job&, scheduler::JobPlan& plan) { plan.workers = workers; });
      const auto record = simulate(cluster, {job(0, 4, 500, 9)}, policy, {});
      REQUIRE(record.ok());
      const double want = 500 / progress((12 + efficiency * workers) / 36, 6);
      CHECK(record->jobs[0].finish_seconds == Approx(want).epsilon(1e-6));
    }
  }
}

}  // namespace
}  // namespace sluice::simulator
