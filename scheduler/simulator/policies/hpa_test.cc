#include "scheduler/simulator/policies/hpa.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

World scaled_job(double knee_cores_per_gpu, int cpu_cores = 200) {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, cpu_cores).job("a", "gpu", 4, kneed(4, knee_cores_per_gpu));
  return world;
}

TEST_CASE("HPA: where it settles after two hours, by need") {
  struct Row {
    const char* situation;
    double knee_cores_per_gpu;
    int want_at_least, want_at_most;
    double want_speed;
  };
  const Row rows[] = {
      // It rests between 72 and 88 % busy, that is with 1.01 to 1.37 times the supply that is needed.
      {"needs 8 cores per GPU and has 3", 8, 27, 42, 0.89},
      {"needs 20", 20, 89, 127, 0.89},
      {"a language model: one idle worker, as an HPA cannot go to zero", 0.5, 1, 1, 0.99},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    World world = scaled_job(row.knee_cores_per_gpu);
    const auto policy = make_hpa_policy();
    world.run(*policy, 480);
    CHECK(world.workers("a") >= row.want_at_least);
    CHECK(world.workers("a") <= row.want_at_most);
    CHECK(world.speed("a") > row.want_speed);
    CHECK(world.local_cores("a") == 12);
  }
}

TEST_CASE("HPA: it climbs by a quarter at a time, since saturated workers are at 100 % of 80 %") {
  World world = scaled_job(40);
  const auto policy = make_hpa_policy();
  std::vector<int> steps;
  for (int i = 0; i < 40; ++i) {
    world.run(*policy, 1);
    const int now = world.workers("a");
    if (steps.empty() || steps.back() != now) steps.push_back(now);
  }
  REQUIRE(steps.size() > 6);
  CHECK(std::vector<int>(steps.begin(), steps.begin() + 6) == std::vector<int>{1, 2, 3, 4, 5, 7});
}

TEST_CASE("HPA: without metrics the number of workers stays") {
  World world = scaled_job(20);
  const auto policy = make_hpa_policy();
  world.run(*policy, 60);
  const int before = world.workers("a");
  for (int i = 0; i < 40; ++i) {
    world.at("a").observation = {std::nullopt, "the metrics server is away"};
    const Plan plan = policy->decide(world.snapshot());
    CHECK(plan.jobs[0].workers == before);
    world.snapshot().taken_at_seconds += World::kStepSeconds;
  }
}

TEST_CASE("HPA: a job that needs less gives workers back after five minutes, not before") {
  World world = scaled_job(20);
  const auto policy = make_hpa_policy();
  world.run(*policy, 480);
  const int before = world.workers("a");
  world.physics("a") = kneed(4, 4);
  world.run(*policy, 20);
  CHECK(world.workers("a") == before);
  world.run(*policy, 40);
  CHECK(world.workers("a") < before / 3);
}

TEST_CASE("HPA: no room for all: replicas wait, and are pods that count as idle") {
  World world = scaled_job(40, 10);
  const auto policy = make_hpa_policy();
  world.run(*policy, 200);
  CHECK(world.workers("a") == 10);
  CHECK(world.plan().jobs[0].reason == Reason::kCpu);

  // The other half of the GPU host is idle, but only this variant uses it.
  World same = scaled_job(40, 10);
  const auto everywhere = make_hpa_policy(WorkerNodes::kAll);
  same.run(*everywhere, 200);
  CHECK(same.workers("a") == 22);
}

TEST_CASE("HPA: a decision between two syncs changes nothing") {
  World world = scaled_job(40);
  const auto policy = make_hpa_policy();
  world.run(*policy, 20);
  const Plan first = policy->decide(world.snapshot());
  world.snapshot().taken_at_seconds += 1;
  CHECK(policy->decide(world.snapshot()).jobs[0].workers == first.jobs[0].workers);
}

}  // namespace
}  // namespace sluice::scheduler::testing
