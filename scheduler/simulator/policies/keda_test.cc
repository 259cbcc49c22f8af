#include "scheduler/simulator/policies/keda.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

World triggered_job(double knee_cores_per_gpu) {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 400).job("a", "gpu", 4, kneed(4, knee_cores_per_gpu));
  return world;
}

// A job whose queue shows a fixed backlog, for as many decisions.
std::vector<int> with_backlog(Policy& policy, World& world, double backlog, int decisions) {
  std::vector<int> workers;
  for (int i = 0; i < decisions; ++i) {
    Measurement m;
    m.queue = {64 - backlog, 64};
    world.at("a").observation = {m, ""};
    const Plan plan = policy.decide(world.snapshot());
    workers.push_back(plan.jobs[0].workers);
    world.snapshot().taken_at_seconds += World::kStepSeconds;
  }
  return workers;
}

TEST_CASE("KEDA: an empty queue is a jump to all that the target allows, as fast as the HPA may grow") {
  World world = triggered_job(20);
  const auto policy = make_keda_policy({.batches_per_worker = 1.0 / 3});
  CHECK(with_backlog(*policy, world, 64, 8) == std::vector<int>{1, 5, 10, 20, 40, 80, 160, 192});
}

TEST_CASE("KEDA: the number of workers follows the backlog, downwards after five minutes") {
  World world = triggered_job(20);
  const auto policy = make_keda_policy({.batches_per_worker = 1.0 / 3});
  REQUIRE(with_backlog(*policy, world, 32, 10).back() == 96);
  CHECK(with_backlog(*policy, world, 34, 2).back() == 96);  // 6 % more: within the tolerance
  CHECK(with_backlog(*policy, world, 40, 2).back() == 120);
  CHECK(with_backlog(*policy, world, 10, 19).back() == 120);
  CHECK(with_backlog(*policy, world, 10, 3).back() == 30);
}

TEST_CASE("KEDA: a full queue takes the last worker away after the cooldown") {
  World world = triggered_job(20);
  const auto policy = make_keda_policy();
  with_backlog(*policy, world, 10, 6);
  const std::vector<int> idle = with_backlog(*policy, world, 0, 30);
  CHECK(idle[18] > 0);
  CHECK(idle.back() == 0);
  CHECK(with_backlog(*policy, world, 1, 4).back() > 0);
}

TEST_CASE("KEDA: without the metric nothing changes") {
  World world = triggered_job(20);
  const auto policy = make_keda_policy();
  const int before = with_backlog(*policy, world, 20, 10).back();
  world.at("a").observation = {std::nullopt, "Prometheus is away"};
  for (int i = 0; i < 50; ++i) {
    CHECK(policy->decide(world.snapshot()).jobs[0].workers == before);
    world.snapshot().taken_at_seconds += World::kStepSeconds;
  }
}

TEST_CASE("KEDA: in a closed loop the job runs at nearly full speed, and a language model gets nothing for long") {
  World world = triggered_job(20);
  const auto policy = make_keda_policy();
  world.run(*policy, 200);
  double sum = 0;
  for (int i = 0; i < 40; ++i) {
    world.run(*policy, 1);
    sum += world.speed("a");
  }
  CHECK(sum / 40 > 0.85);

  World idle = triggered_job(0.5);
  const auto other = make_keda_policy();
  idle.run(*other, 100);
  CHECK(idle.workers("a") == 0);
}

// What the job has after decisions at these seconds, with this backlog at each.
struct Moment {
  double second;
  double backlog;
  int want;
};

void follow(Policy& policy, World& world, const std::vector<Moment>& moments) {
  const double start = world.snapshot().taken_at_seconds;
  for (const Moment& moment : moments) {
    INFO("second " << moment.second);
    world.snapshot().taken_at_seconds = start + moment.second;
    CHECK(with_backlog(policy, world, moment.backlog, 1) == std::vector<int>{moment.want});
  }
}

TEST_CASE("KEDA: from zero to one at a poll, every 30 s; from there on the HPA, every 15 s") {
  World world = triggered_job(20);
  const auto policy = make_keda_policy();
  follow(*policy, world,
         {{0, 0, 0},     // polled: nothing to do
          {5, 10, 0},    // the backlog comes right after
          {29, 10, 0},   //
          {30, 10, 1},   // the next poll
          {31, 10, 5},   // its HPA wants twenty, and may add four pods in 15 s
          {45, 10, 5},   // not a sync yet
          {46, 10, 10},  // twice as many
          {61, 10, 20}});
}

TEST_CASE("KEDA: how the last workers go, second by second") {
  World world = triggered_job(20);
  const auto policy = make_keda_policy();
  follow(*policy, world,
         {{0, 2, 1},
          {15, 2, 4},     // two batches: four workers
          {30, 2, 4},     // the last that were asked for, and the last time that it was active
          {60, 0, 4},     // the HPA waits
          {315, 0, 4},    //
          {330, 0, 1},    // nothing higher for 300 s, and the HPA's least is one
          {331, 0, 0}});  // and no backlog for more than 300 s
}

TEST_CASE("KEDA: one batch missing in between starts the cooldown anew") {
  World world = triggered_job(20);
  const auto policy = make_keda_policy();
  follow(*policy, world, {{0, 1, 1}, {15, 1, 2}, {300, 0.1, 2}, {316, 0, 1}, {599, 0, 1}, {600, 0, 1}, {601, 0, 0}});
}

TEST_CASE("KEDA: the job's bounds, by situation") {
  struct Row {
    const char* situation;
    int min, max;
    double backlog;
    std::vector<int> want;
  };
  const Row rows[] = {
      {"a minimum, and nothing to do", 3, 100, 0, {3, 3, 3, 3}},
      {"a minimum is what it starts from: seven, the eight that it wants", 3, 100, 4, {3, 7, 8, 8}},
      {"a maximum", 0, 6, 40, {1, 5, 6, 6}},
      {"a maximum of none: nothing is started", 0, 0, 40, {0, 0, 0, 0}},
      {"more in the queue than it holds is no backlog", 0, 100, -5, {0, 0, 0, 0}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    World world = triggered_job(20);
    world.at("a").min_workers = row.min;
    world.at("a").max_workers = row.max;
    CHECK(with_backlog(*make_keda_policy(), world, row.backlog, 4) == row.want);
  }
}

TEST_CASE("KEDA: another target, another pace") {
  World world = triggered_job(20);
  const auto slow = make_keda_policy({.batches_per_worker = 2, .polling_seconds = 60, .cooldown_seconds = 30});
  follow(*slow, world, {{0, 0, 0}, {59, 8, 0}, {60, 8, 1}, {61, 8, 4}, {91, 0, 4}, {119, 0, 4}, {120, 0, 0}});
}

TEST_CASE("KEDA: what a growing backlog asks for is heard at the HPA's next sync, not before") {
  World world = triggered_job(20);
  const auto policy = make_keda_policy();
  follow(*policy, world, {{0, 2, 1}, {15, 2, 4}, {20, 3, 4}, {29.9, 3, 4}, {30, 3, 6}});
}

}  // namespace
}  // namespace sluice::scheduler::testing
