#include "scheduler/simulator/policies/fastflow.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

World one_job(double knee_cores_per_gpu) {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 200).job("a", "gpu", 4, kneed(4, knee_cores_per_gpu));
  return world;
}

TEST_CASE("FastFlow: one profile, one jump") {
  World world = one_job(8);
  const auto policy = make_fastflow_policy();
  std::vector<int> workers;
  for (int i = 0; i < 6; ++i) {
    world.run(*policy, 1);
    workers.push_back(world.workers("a"));
  }
  // Local profile, one worker, its first window, then (32 - 12) / 0.77 = 25.97 workers.
  CHECK(workers == std::vector<int>{0, 1, 1, 26, 26, 26});
  CHECK(world.local_cores("a") == 12);
}

TEST_CASE("FastFlow: no offload, by need") {
  for (const double knee : {0.5, 2.0, 3.0, 3.2}) {
    INFO(knee << " cores per GPU, of which it has 3");
    World world = one_job(knee);
    const auto policy = make_fastflow_policy();
    world.run(*policy, 20);
    CHECK(world.workers("a") == 0);
  }
}

TEST_CASE("FastFlow: a job that changes is not profiled again") {
  World world = one_job(8);
  const auto policy = make_fastflow_policy();
  world.run(*policy, 20);
  world.physics("a") = kneed(4, 24);
  world.run(*policy, 50);
  CHECK(world.workers("a") == 26);
}

TEST_CASE("FastFlow: no metrics, no profile") {
  World world = one_job(8);
  const auto policy = make_fastflow_policy();
  for (int i = 0; i < 10; ++i) CHECK(policy->decide(world.snapshot()).jobs[0].workers == 0);
}

// The workers after a decision on exactly this measurement.
int decided_on(Policy& policy, World& world, const Measurement& m) {
  world.at("a").observation = {m, ""};
  return policy.decide(world.snapshot()).jobs[0].workers;
}

TEST_CASE("FastFlow: each profile waits for what it has to compare") {
  World world = one_job(8);
  world.at("a").hosts[0].limit_millicores = 12'000;
  const auto policy = make_fastflow_policy();
  // 32,000 samples/s if it never waited; a core of its own does 1000, a worker 770.
  Measurement m{.samples_per_second = 12'000, .compute_share = 0.375, .wait_share = 0.625};
  CHECK(decided_on(*policy, world, m) == 0);  // no executor has been measured
  m.local = SourceRate{12'000, 0};
  CHECK(decided_on(*policy, world, m) == 0);  // nor any CPU of it
  m.local = SourceRate{12'000, 12};
  CHECK(decided_on(*policy, world, m) == 1);
  CHECK(decided_on(*policy, world, m) == 1);  // the worker has not worked yet
  m.remote = SourceRate{0, 0.01};
  CHECK(decided_on(*policy, world, m) == 1);
  m.remote = SourceRate{770, 1};
  CHECK(decided_on(*policy, world, m) == 26);  // (32 - 12) / 0.77 = 25.97
  m.remote = SourceRate{77, 1};
  CHECK(decided_on(*policy, world, m) == 26);  // decided once
}

TEST_CASE("FastFlow: the profile is of the workers' own size") {
  World world = one_job(8);
  world.at("a").hosts[0].limit_millicores = 12'000;
  world.at("a").worker_millicores = 4000;
  Measurement m{.samples_per_second = 12'000, .compute_share = 0.375, .wait_share = 0.625};
  m.local = SourceRate{12'000, 12};
  const auto policy = make_fastflow_policy();
  REQUIRE(decided_on(*policy, world, m) == 1);
  m.remote = SourceRate{770, 1};
  CHECK(decided_on(*policy, world, m) == 7);  // 20,000 / 3080 = 6.49
}

}  // namespace
}  // namespace sluice::scheduler::testing
