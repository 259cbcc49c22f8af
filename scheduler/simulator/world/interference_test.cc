// Sluice where the feeders of one job slow the trainer of another one down, or nothing does.
#include <cmath>
#include <memory>
#include <utility>

#include "scheduler/simulator/policies/registry.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;

// How many decisions saw a trainer that is guarded from its neighbours.
class Watched : public scheduler::Policy {
 public:
  Watched() : ours_(std::move(scheduler::make_policy("sluice", {})).value()) {}
  std::string_view name() const override { return "watched"; }

  scheduler::Plan decide(const scheduler::ClusterSnapshot& snapshot) override {
    for (const scheduler::Job& job : snapshot.jobs) {
      if (job.memory && job.memory->neighbours.cap) ++guarded;
      if (job.memory && job.memory->crowding.verdict == scheduler::Crowding::Verdict::kHarmful) ++crowded;
    }
    return ours_->decide(snapshot);
  }

  int guarded = 0;
  int crowded = 0;  // the same, of a job that knows that full hosts harm

 private:
  std::unique_ptr<scheduler::Policy> ours_;
};

// A host of 8 GPUs and 24 cores, and CPU enough elsewhere.
Cluster one_host(double interference, double noise) {
  Cluster cluster = testing::small_cluster();
  cluster.groups = {{"gpu", 1, 8, 24, 0, false}, {"cpu", 1, 0, 64, 0, false}};
  cluster.physics.interference = interference;
  cluster.physics.metrics_noise = noise;
  return cluster;
}

RunRecord run_with(scheduler::Policy& policy, const Cluster& cluster, const Workload& workload, std::uint64_t seed) {
  RunOptions options;
  options.timeline = true;
  options.seed = seed;
  auto record = simulate(cluster, workload, policy, options);
  REQUIRE(record.ok());
  return std::move(record).value();
}

// Of a job's speed, over a part of its timeline.
double mean_speed(const RunRecord& record, std::size_t job, double from_seconds, double to_seconds) {
  const auto& steps = record.jobs[job].timeline;
  double sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double end = i + 1 < steps.size() ? steps[i + 1].at_seconds : record.jobs[job].finish_seconds;
    sum += std::max(0.0, std::min(end, to_seconds) - std::max(steps[i].at_seconds, from_seconds)) * steps[i].speed;
  }
  return sum / (to_seconds - from_seconds);
}

TEST_CASE("A trainer that its new neighbour's feeders slow down is restored, and the neighbour is fed from elsewhere") {
  // A language model, and from the 1000th second on a job that would use all of the host's cores.
  const Workload workload = {job(0, 4, 6000, 0.1), job(1000, 4, 6000, 4)};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Watched policy;
    const RunRecord record = run_with(policy, one_host(0.4, 0.05), workload, seed);
    const double alone = mean_speed(record, 0, 500, 1000);
    const double beside_grown_feeders = mean_speed(record, 0, 1050, 1150);
    CHECK(beside_grown_feeders < 0.85 * alone);
    CHECK(policy.guarded > 0);
    // Within six minutes of its arrival, for what is left of the ten.
    const double restored = mean_speed(record, 0, 1360, 1700);
    CHECK(restored > 0.9 * alone);
    CHECK(mean_speed(record, 1, 1360, 1700) > 0.8);  // of a speed that is at most 1
    // And again and again: the guard tries what harms for a part of the time only.
    CHECK(mean_speed(record, 0, 1360, 5000) > (beside_grown_feeders + restored) / 2);
  }
}

TEST_CASE("Jobs that come and go show what a full host costs, and nothing where it costs nothing") {
  // Pairs of jobs share the host, one pair after the other. One would use more than its share of it.
  Workload workload;
  for (int i = 0; i < 16; ++i) workload.push_back(job(1300.0 * (i / 2), 4, 1000, i % 2 == 0 ? 1 : 5));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Watched policy;
    run_with(policy, one_host(0.4, 0.05), workload, seed);
    Watched calm;
    run_with(calm, one_host(0, 0.05), workload, seed);
    CHECK(policy.crowded > 0);
    CHECK(calm.crowded == 0);
  }
}

TEST_CASE("Where nothing interferes, no trainer is guarded from its neighbours, whatever the noise") {
  const Workload workload = {job(0, 2, 4000, 0.1), job(500, 2, 3000, 4), job(1500, 2, 3000, 6), job(1700, 2, 3000, 2)};
  for (const double noise : {0.0, 0.05, 0.3}) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      CAPTURE(noise, seed);
      Watched policy;
      run_with(policy, one_host(0, noise), workload, seed);
      CHECK(policy.guarded == 0);
      CHECK(policy.crowded == 0);
    }
  }
}

}  // namespace
}  // namespace sluice::simulator
