#include "scheduler/simulator/exporter.h"

#include <cmath>

#include "scheduler/policies/registry.h"
#include "scheduler/simulator/supply.h"
#include "scheduler/simulator/testing/worlds.h"
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

TEST_CASE("The truth behind the snapshot does not reach the plan") {
  // Two worlds whose exporters show the same until 200 s, but in which everything else differs: later demand, failures,
  // start-up times, how long jobs really are, and what is still to arrive.
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

TEST_CASE("A snapshot holds what an exporter and the API show, and nothing of the job's profile") {
  testing::ScriptedPolicy first([](const scheduler::Job& job, scheduler::JobPlan&) {
    CHECK(job.memory == std::nullopt);
    CHECK(job.local_adjustable);
    CHECK(job.hosts.size() == 1);
    CHECK_FALSE(job.waiting);
  });
  REQUIRE(simulate(testing::small_cluster(), {testing::job(0, 4, 30, 9, 2)}, first, {}).ok());
  const scheduler::ClusterSnapshot& snapshot = first.last;
  REQUIRE(snapshot.nodes.size() == 3);
  CHECK(snapshot.nodes[0].gpus == 8);
  CHECK(snapshot.nodes[2].allocatable_millicores == 64000);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 0);
}

}  // namespace
}  // namespace sluice::simulator
