#include "scheduler/policies/keda.h"

#include "scheduler/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

World one_job(double knee_cores_per_gpu) {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 400).job("a", "gpu", 4, kneed(4, knee_cores_per_gpu));
  return world;
}

// A job whose queue shows a fixed backlog, for as many decisions.
std::vector<int> with_backlog(Policy& policy, World& world, double backlog, int decisions) {
  std::vector<int> workers;
  for (int i = 0; i < decisions; ++i) {
    Measurement m;
    m.queue_capacity = 64;
    m.queue_depth = 64 - backlog;
    world.at("a").observation = {m, ""};
    const Plan plan = policy.decide(world.snapshot());
    workers.push_back(plan.jobs[0].workers);
    world.snapshot().taken_at_seconds += World::kStepSeconds;
  }
  return workers;
}

TEST_CASE("KEDA: an empty queue is a jump to all that the target allows, as fast as the HPA may grow") {
  World world = one_job(20);
  const auto policy = make_keda_policy({.batches_per_worker = 1.0 / 3});
  CHECK(with_backlog(*policy, world, 64, 8) == std::vector<int>{1, 5, 10, 20, 40, 80, 160, 192});
}

TEST_CASE("KEDA: the number of workers follows the backlog, downwards after five minutes") {
  World world = one_job(20);
  const auto policy = make_keda_policy({.batches_per_worker = 1.0 / 3});
  REQUIRE(with_backlog(*policy, world, 32, 10).back() == 96);
  CHECK(with_backlog(*policy, world, 34, 2).back() == 96);  // 6 % more: within the tolerance
  CHECK(with_backlog(*policy, world, 40, 2).back() == 120);
  CHECK(with_backlog(*policy, world, 10, 19).back() == 120);
  CHECK(with_backlog(*policy, world, 10, 3).back() == 30);
}

TEST_CASE("KEDA: a full queue takes the last worker away after the cooldown") {
  World world = one_job(20);
  const auto policy = make_keda_policy();
  with_backlog(*policy, world, 10, 6);
  const std::vector<int> idle = with_backlog(*policy, world, 0, 30);
  CHECK(idle[18] > 0);
  CHECK(idle.back() == 0);
  CHECK(with_backlog(*policy, world, 1, 4).back() > 0);
}

TEST_CASE("KEDA: without the metric nothing changes") {
  World world = one_job(20);
  const auto policy = make_keda_policy();
  const int before = with_backlog(*policy, world, 20, 10).back();
  world.at("a").observation = {std::nullopt, "Prometheus is away"};
  for (int i = 0; i < 50; ++i) {
    CHECK(policy->decide(world.snapshot()).jobs[0].workers == before);
    world.snapshot().taken_at_seconds += World::kStepSeconds;
  }
}

TEST_CASE("KEDA: in a closed loop the job runs at nearly full speed, and a language model gets nothing for long") {
  World world = one_job(20);
  const auto policy = make_keda_policy();
  world.run(*policy, 200);
  double sum = 0;
  for (int i = 0; i < 40; ++i) {
    world.run(*policy, 1);
    sum += world.speed("a");
  }
  CHECK(sum / 40 > 0.85);

  World idle = one_job(0.5);
  const auto other = make_keda_policy();
  idle.run(*other, 100);
  CHECK(idle.workers("a") == 0);
}

}  // namespace
}  // namespace sluice::scheduler::testing
