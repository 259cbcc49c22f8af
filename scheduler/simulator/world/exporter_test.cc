#include "scheduler/simulator/world/exporter.h"

#include <algorithm>
#include <cmath>

#include "scheduler/simulator/policies/registry.h"
#include "scheduler/simulator/testing/worlds.h"
#include "scheduler/simulator/world/supply.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

// A job that has run for so long at constant rates.
struct Steady {
  JobSpec spec = testing::job(0, 2, 1e6, 6);
  JobState job;

  explicit Steady(double seconds, const Physics& physics) {
    job.spec = &spec;
    job.phase = Phase::kRunning;
    job.start_seconds = 0;
    job.knee_cores = 12;
    record_history(job, physics);
    job.rates.supply_ratio = 0.5;
    job.rates.per_second = {0, 1000, 20, 0.5, 0.5, 1000, 6, 0, 0, 0};
    advance(job, seconds);
  }
};

TEST_CASE("A measurement is a window that ended some time ago") {
  Physics physics;
  physics.metrics_noise = 0;
  Steady steady(100, physics);
  const auto seen = observe(steady.job, 100, 1, physics);
  REQUIRE(seen.measurement);
  CHECK(seen.measurement->window_end_seconds == 70);
  CHECK(seen.measurement->window_seconds == 15);
  CHECK(seen.measurement->samples_per_second == Approx(1000));
  CHECK(seen.measurement->compute_share == Approx(0.5));
  CHECK(seen.measurement->batches_in_window == Approx(300));
  REQUIRE(seen.measurement->local);
  CHECK(seen.measurement->local->busy_cores == Approx(6));
  CHECK_FALSE(seen.measurement->remote);  // no remote worker has ever worked
}

TEST_CASE("Nothing is seen before a window has an end, and slow steps take a longer window") {
  Physics physics;
  Steady steady(25, physics);
  CHECK_FALSE(observe(steady.job, 25, 1, physics).measurement);
  physics.metrics_window_batches = 1000;
  Steady longer(300, physics);
  const auto seen = observe(longer.job, 300, 1, physics);
  REQUIRE(seen.measurement);
  CHECK(seen.measurement->batches_in_window >= 1000);
}

TEST_CASE("Old rates are remembered as long as a window may need them") {
  Physics physics;
  physics.metrics_noise = 0;
  Steady steady(100, physics);
  record_history(steady.job, physics);
  steady.job.rates.per_second.samples = 3000;
  advance(steady.job, 110);
  CHECK(observe(steady.job, 110, 1, physics).measurement->samples_per_second == Approx(1000));
  advance(steady.job, 200);
  CHECK(observe(steady.job, 200, 1, physics).measurement->samples_per_second == Approx(3000));
  for (int i = 0; i < 5000; ++i) {
    advance(steady.job, 200 + i);
    record_history(steady.job, physics);
  }
  CHECK(steady.job.history.size() < 700);
}

TEST_CASE("Noise has the spread it is said to have, and is the same for every policy") {
  Physics physics;
  Steady steady(5000, physics);
  double squares = 0;
  int count = 0;
  for (double now = 100; now < 4900; now += 5, ++count) {
    const auto seen = observe(steady.job, now, 3, physics);
    const double error = std::log(seen.measurement->samples_per_second / 1000);
    squares += error * error;
    CHECK(observe(steady.job, now, 3, physics).measurement->samples_per_second == seen.measurement->samples_per_second);
  }
  CHECK(std::sqrt(squares / count) == Approx(physics.metrics_noise).epsilon(0.1));
}

// Hands every snapshot to the policy under test, and remembers snapshots and plans.
class Recorder : public scheduler::Policy {
 public:
  explicit Recorder(scheduler::Policy& inner) : inner_(inner) {}
  std::string_view name() const override { return "recorder"; }
  scheduler::Plan decide(const scheduler::ClusterSnapshot& snapshot) override {
    snapshots.push_back(snapshot);
    plans.push_back(inner_.decide(snapshot));
    return plans.back();
  }
  std::vector<scheduler::ClusterSnapshot> snapshots;
  std::vector<scheduler::Plan> plans;

 private:
  scheduler::Policy& inner_;
};

std::vector<int> workers_of(const scheduler::Plan& plan) {
  std::vector<int> workers;
  for (const scheduler::JobPlan& job : plan.jobs) workers.push_back(job.workers);
  return workers;
}

TEST_CASE("A gang that waits for its GPUs is shown as ranks that fit on nodes, and does not run") {
  struct Row {
    int gpus, ranks;
  };
  for (const Row& row : {Row{4, 1}, Row{8, 1}, Row{12, 2}, Row{15, 2}, Row{16, 2}}) {
    CAPTURE(row.gpus);
    auto sluice = scheduler::make_policy("sluice", {});
    REQUIRE(sluice.ok());
    Recorder recorder(**sluice);
    RunOptions options;
    options.most_seconds = 10000;
    const Workload jobs = {testing::job(0, 16, 50, 1), testing::job(1, row.gpus, 50, 1)};
    REQUIRE(simulate(testing::small_cluster(), jobs, recorder, options).ok());
    const auto found = [&](bool running) {
      const auto shows = [&](const scheduler::ClusterSnapshot& snapshot) {
        const auto& jobs = snapshot.jobs;
        return !jobs.empty() && jobs.back().id.name == "job-000001" && jobs.back().running == running;
      };
      const auto at = std::find_if(recorder.snapshots.begin(), recorder.snapshots.end(), shows);
      REQUIRE(at != recorder.snapshots.end());
      return at->jobs.back();
    };
    CHECK(found(false).ranks == row.ranks);
    const scheduler::Job started = found(true);
    CHECK(started.hosts.size() == static_cast<std::size_t>(row.ranks));
  }
}

TEST_CASE("The truth behind the snapshot does not reach the plan") {
  // Two worlds whose exporters show the same until 200 s. All else differs: later demand, failures, start-up times, the
  // real length of jobs, and later arrivals.
  Cluster one = testing::small_cluster(), other = one;
  one.physics.metrics_noise = other.physics.metrics_noise = 0;
  one.physics.remaining_time_known = other.physics.remaining_time_known = false;
  one.physics.worker_startup_seconds = 300;
  other.physics.worker_startup_seconds = 400;
  other.physics.node_repair_seconds = 5;
  other.physics.checkpoint_seconds = 1;
  const Workload short_jobs = {testing::job(0, 4, 3000, 9), testing::job(5, 2, 2000, 2)};
  Workload long_jobs = {testing::job(0, 4, 30000, 9), testing::job(5, 2, 9000, 2), testing::job(5000, 8, 100, 30)};
  const auto recorded = [](const Cluster& cluster, const Workload& workload) {
    auto policy = scheduler::make_policy("sluice", {});
    REQUIRE(policy.ok());
    Recorder recorder(**policy);
    REQUIRE(simulate(cluster, workload, recorder, {}).ok());
    std::vector<std::vector<int>> plans;
    for (std::size_t i = 0; i < recorder.plans.size(); ++i)
      if (recorder.snapshots[i].taken_at_seconds < 250) plans.push_back(workers_of(recorder.plans[i]));
    return plans;
  };
  const auto plans = recorded(one, short_jobs);
  CHECK(plans.size() > 10);
  CHECK(plans == recorded(other, long_jobs));
}

TEST_CASE("A job like an earlier one begins with its knee and its workers, until it is measured") {
  Workload workload = {testing::job(0, 4, 300, 9, 2)};
  workload[0].learnt = LearntJob{7, 5};
  std::vector<scheduler::Job> seen;
  testing::ScriptedPolicy policy([&](const scheduler::Job& job, scheduler::JobPlan& plan) {
    seen.push_back(job);
    plan.workers = job.allocated_workers;
    plan.estimate.memory = job.memory;
    plan.estimate.memory->was_measured = seen.size() > 1;
    if (seen.size() > 1) plan.workers = 0;
  });
  REQUIRE(simulate(testing::small_cluster(), workload, policy, {}).ok());
  REQUIRE(seen.size() > 3);
  REQUIRE((seen[0].memory && seen[0].memory->knee_cores && seen[0].memory->remote_rate_per_core));
  CHECK(seen[0].memory->knee_cores->published == 28);
  CHECK(seen[0].memory->local_rate_per_core->published == Approx(4000.0 / 28));
  CHECK(seen[0].memory->remote_rate_per_core->published == Approx(4000.0 / 28 * 0.77));
  CHECK(seen[0].allocated_workers == 5);
  CHECK(seen[1].workers.size() == 5);
  CHECK(seen.back().allocated_workers == 0);  // a measured job keeps what the plan says
}

TEST_CASE("A snapshot holds what an exporter and the API show, and nothing of the job's profile") {
  testing::ScriptedPolicy first([](const scheduler::Job& job, scheduler::JobPlan&) {
    CHECK(job.memory == std::nullopt);
    CHECK(job.local_adjustable);
    CHECK(job.hosts.size() == 1);
  });
  REQUIRE(simulate(testing::small_cluster(), {testing::job(0, 4, 30, 9, 2)}, first, {}).ok());
  const scheduler::ClusterSnapshot& snapshot = first.last;
  REQUIRE(snapshot.nodes.size() == 3);
  CHECK(snapshot.nodes[0].gpus == 8);
  CHECK(snapshot.nodes[2].allocatable_millicores == 64000);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 0);
  CHECK(snapshot.nodes[0].price_per_hour == Approx(8 * 2.48 + 24 * 0.05));
  Cluster paid = testing::small_cluster();
  paid.physics.gpu_price_includes_host = true;
  REQUIRE(simulate(paid, {testing::job(0, 4, 30, 9, 2)}, first, {}).ok());
  CHECK(first.last.nodes[0].price_per_hour == Approx(8 * 2.48));
  CHECK(first.last.nodes[2].price_per_hour == Approx(64 * 0.05));
}

TEST_CASE(
    "Wrong rates are wrong by one factor for all of a job's executors, all its life, and by another for each job") {
  Physics physics, wrong;
  physics.metrics_noise = wrong.metrics_noise = 0;
  wrong.busy_cpu_error = 0.8;
  double squares = 0;
  constexpr int kJobs = 400;
  for (int index = 0; index < kJobs; ++index) {
    Steady steady(500, physics);
    steady.job.index = index;
    steady.job.rates.per_second.remote_samples = 300;
    steady.job.rates.per_second.remote_busy_core_seconds = 2;
    record_history(steady.job, physics);
    advance(steady.job, 1000);
    const auto seen = observe(steady.job, 1000, 1, wrong).measurement;
    REQUIRE(seen);
    const double factor = seen->local->busy_cores / 6;
    CHECK(seen->remote->busy_cores / 2 == Approx(factor));
    CHECK(observe(steady.job, 900, 1, wrong).measurement->local->busy_cores / 6 == Approx(factor));
    // Nothing else is wrong: what the trainer counts is counted by its own clock.
    CHECK(seen->samples_per_second == Approx(1000));
    CHECK(seen->compute_share == Approx(0.5));
    CHECK(seen->local->samples_per_second == Approx(1000));
    CHECK(observe(steady.job, 1000, 1, physics).measurement->local->busy_cores == Approx(6));
    squares += std::log(factor) * std::log(factor);
  }
  CHECK(std::sqrt(squares / kJobs) == Approx(0.8).epsilon(0.1));
}

TEST_CASE("Perfect information is the truth of this moment, with or without wrong rates, noise and age") {
  Physics physics;
  physics.perfect_information = true;
  physics.busy_cpu_error = 2;
  physics.metrics_noise = 2;
  Steady steady(1, physics);
  const auto seen = observe(steady.job, 1, 1, physics).measurement;
  REQUIRE(seen);
  CHECK(seen->window_end_seconds == 1);
  CHECK(seen->samples_per_second == 1000);
  CHECK(seen->local->busy_cores == 6);
  // It even knows what a remote core would do: D / K is 2 GPUs' samples over 12 cores, times 0.77.
  REQUIRE(seen->remote);
  CHECK(seen->remote->samples_per_second / seen->remote->busy_cores == Approx(2 * 1000.0 / 12 * 0.77));
}

TEST_CASE("A window is as long as its batches need, and no longer than it may be") {
  struct Row {
    double batches_per_second, want_seconds;
  };
  const Row rows[] = {{20, 15}, {2, 15}, {1, 22.5}, {0.5, 50.625}, {0.1, 256.2890625}, {0.01, 600}};
  for (const Row& row : rows) {
    CAPTURE(row.batches_per_second);
    Physics physics;
    Steady steady(0, physics);
    steady.job.rates.per_second.batches = row.batches_per_second;
    advance(steady.job, 5000);
    const auto seen = observe(steady.job, 5000, 1, physics).measurement;
    REQUIRE(seen);
    CHECK(seen->window_seconds == Approx(row.want_seconds));
    CHECK(seen->batches_in_window == Approx(row.want_seconds * row.batches_per_second));
  }
}

TEST_CASE("A window never reaches back before the trainer's start, nor into its last life") {
  Physics physics;
  physics.metrics_window_batches = 1e9;
  Steady steady(400, physics);
  steady.job.start_seconds = 300;
  const auto seen = observe(steady.job, 400, 1, physics).measurement;
  REQUIRE(seen);
  CHECK(seen->window_seconds == Approx(70));  // from 300 to 370
  CHECK_FALSE(observe(steady.job, 330, 1, physics).measurement);
  CHECK(observe(steady.job, 330, 1, physics).missing_reason == "no metrics yet");
}

TEST_CASE("The older the metrics, the older what they show") {
  for (const double age : {0.0, 30.0, 120.0}) {
    CAPTURE(age);
    Physics physics;
    physics.metrics_age_seconds = age;
    physics.metrics_noise = 0;
    Steady steady(1000, physics);
    record_history(steady.job, physics);
    steady.job.rates.per_second.samples = 4000;  // from 1000 s on
    double first_seen = -1;
    for (double now = 1001; now < 1300; now += 1) {
      advance(steady.job, now);
      const auto seen = observe(steady.job, now, 1, physics).measurement;
      if (first_seen < 0 && seen->samples_per_second > 3999) first_seen = now;
    }
    CHECK(first_seen == Approx(1000 + 15 + age).margin(1));
  }
}

TEST_CASE("A queue is full or empty away from the knee, and tells no more") {
  struct Row {
    double knee;  // of 4 GPUs that have 12 cores
    double want;  // of 64 batches
  };
  for (const Row& row : {Row{30, 0}, Row{3 / 0.9, 0}, Row{3, 32}, Row{3 / 1.1, 64}, Row{0.5, 64}}) {
    CAPTURE(row.knee);
    double depth = -1;
    testing::ScriptedPolicy policy([&](const scheduler::Job& job, scheduler::JobPlan&) {
      if (job.observation.measurement) depth = job.observation.measurement->queue->depth;
    });
    REQUIRE(simulate(testing::small_cluster(), {testing::job(0, 4, 100, row.knee)}, policy, {}).ok());
    CHECK(depth == Approx(row.want).margin(1e-6));
  }
}

TEST_CASE("The depth of the queue is as old as every other metric") {
  for (const double age : {0.0, 30.0, 90.0}) {
    CAPTURE(age);
    Cluster cluster = testing::small_cluster();
    cluster.physics.metrics_age_seconds = age;
    cluster.physics.decision_period_seconds = 1;
    cluster.physics.worker_startup_seconds = 10;
    // Starved until 64 workers are there, 10 s after it has started; well fed from then on.
    double first_full = -1;
    const testing::ScriptedPolicy* looking = nullptr;
    testing::ScriptedPolicy policy([&](const scheduler::Job& job, scheduler::JobPlan& plan) {
      plan.workers = 64;
      const auto& m = job.observation.measurement;
      if (m && m->queue->depth > 0 && first_full < 0) first_full = looking->last.taken_at_seconds;
    });
    looking = &policy;
    REQUIRE(simulate(cluster, {testing::job(0, 4, 200, 9)}, policy, {}).ok());
    CHECK(first_full == Approx(10 + age).margin(1.1));
  }
}

TEST_CASE("A queue fills while its trainer evaluates, and is empty while the storage is what lacks") {
  Cluster pausing = testing::small_cluster();
  pausing.physics.epoch_seconds = 20;
  pausing.physics.evaluation_seconds = 1000;
  double depth = -1;
  testing::ScriptedPolicy seeing([&](const scheduler::Job& job, scheduler::JobPlan&) {
    if (job.observation.measurement) depth = job.observation.measurement->queue->depth;
  });
  REQUIRE(simulate(pausing, {testing::job(0, 4, 21, 30)}, seeing, {}).ok());
  CHECK(depth == 64);

  Cluster cluster = testing::small_cluster();
  cluster.physics.storage_gbps = 1;
  cluster.physics.storage_share_of_network = 1;
  double fullest = 0;
  testing::ScriptedPolicy policy([&](const scheduler::Job& job, scheduler::JobPlan&) {
    if (job.observation.measurement) fullest = std::max(fullest, job.observation.measurement->queue->depth);
  });
  // 24 cores for 8 wanted, and an eighth of what it would read.
  REQUIRE(simulate(cluster, {testing::job(0, 8, 50, 1, 1)}, policy, {}).ok());
  CHECK(fullest == 0);
}

TEST_CASE("Perfect information is there while the metrics are away, too") {
  RunOptions options;
  options.incidents = {{IncidentKind::kMetricsLost, "", 0, 1e6}};
  for (const bool perfect : {false, true}) {
    CAPTURE(perfect);
    Cluster cluster = testing::small_cluster();
    cluster.physics.perfect_information = perfect;
    int seen = 0;
    testing::ScriptedPolicy policy(
        [&](const scheduler::Job& job, scheduler::JobPlan&) { seen += job.observation.measurement ? 1 : 0; });
    REQUIRE(simulate(cluster, {testing::job(0, 4, 200, 9)}, policy, options).ok());
    CHECK((seen > 0) == perfect);
  }
}

TEST_CASE("Noise of one figure tells nothing about another, and that of one job nothing about the next") {
  Physics physics;
  physics.metrics_noise = 0.3;
  Steady steady(5000, physics);
  double products = 0, between_jobs = 0;
  int count = 0;
  for (double now = 100; now < 4900; now += 5, ++count) {
    steady.job.index = 0;
    const auto one = observe(steady.job, now, 3, physics).measurement;
    steady.job.index = 1;
    const auto other = observe(steady.job, now, 3, physics).measurement;
    products += std::log(one->samples_per_second / 1000) * std::log(one->local->busy_cores / 6);
    between_jobs += std::log(one->samples_per_second / 1000) * std::log(other->samples_per_second / 1000);
  }
  CHECK(products / count == Approx(0).margin(0.2 * 0.09));
  CHECK(between_jobs / count == Approx(0).margin(0.2 * 0.09));
}

}  // namespace
}  // namespace sluice::simulator
