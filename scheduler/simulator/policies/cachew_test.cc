#include "scheduler/simulator/policies/cachew.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("Cachew: where it settles, by the size of its workers") {
  struct Row {
    const char* situation;
    CachewWorker worker;
    double knee_cores_per_gpu;
    int want_workers;  // of one core
  };
  const Row rows[] = {
      // 4 GPUs need 32 cores and have 12; 20 / 0.77 = 26 remote ones.
      {"seven cores each: enough, and more", {"cachew", 7000}, 8, 35},
      {"two cores each", {"cachew-2", 2000}, 8, 24},
      {"one core each: it stops where one brings less than 3 %", {"cachew-1", 1000}, 8, 14},
      {"one core each, 20 cores per GPU: it stops as early, far from the need", {"cachew-1", 1000}, 20, 17},
      {"a language model keeps one worker", {"cachew", 7000}, 0.5, 7},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    World world;
    world.node("gpu", 8, 24).node("cpu", 0, 200).job("a", "gpu", 4, kneed(4, row.knee_cores_per_gpu));
    const auto policy = make_cachew_policy(row.worker, {}, 1);
    world.run(*policy, 400);
    CHECK(world.workers("a") == row.want_workers);
    CHECK(world.local_cores("a") == 12);
  }
}

TEST_CASE("Cachew: free workers go to the first job that wants one") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 28);
  world.job("a", "gpu", 4, kneed(4, 30)).job("b", "gpu", 4, kneed(4, 30));
  const auto policy = make_cachew_policy({"cachew", 7000}, {}, 1);
  world.run(*policy, 200);
  // Both climb in step until there is nothing left; the first in order has the larger part.
  CHECK(world.workers("a") + world.workers("b") == 28);
  CHECK(world.workers("a") >= world.workers("b"));
}

TEST_CASE("Cachew: a worker of which only a part found room is waited for, and the climb stands still") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 10).job("a", "gpu", 8, kneed(8, 30));
  const auto policy = make_cachew_policy({"cachew", 7000}, {}, 1);
  world.run(*policy, 100);
  CHECK(world.workers("a") == 10);
  CHECK(world.plan().jobs[0].workers == 10);
}

TEST_CASE("Cachew: a job that comes back starts from one worker") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 200).job("a", "gpu", 4, kneed(4, 8));
  const auto policy = make_cachew_policy({"cachew", 7000}, {}, 1);
  world.run(*policy, 100);
  world.at("a").running = false;
  world.run(*policy, 1);
  CHECK(world.workers("a") == 0);
  world.at("a").running = true;
  world.run(*policy, 1);
  CHECK(world.workers("a") == 7);
}

TEST_CASE("Cachew: a worker is as many pods of the job's own size as come next to seven cores, and one at least") {
  struct Row {
    std::int64_t pod_millicores;
    int want_pods;
  };
  for (const Row& row : {Row{1000, 7}, Row{2000, 4}, Row{3000, 2}, Row{4000, 2}, Row{5000, 1}, Row{20'000, 1}}) {
    INFO(row.pod_millicores << "m");
    World world;
    world.node("gpu", 8, 24).node("cpu", 0, 200).job("a", "gpu", 4, kneed(4, 8));
    world.at("a").worker_millicores = row.pod_millicores;
    world.run(*make_cachew_policy({"cachew", 7000}, {}, 1), 1);
    CHECK(world.workers("a") == row.want_pods);
  }
}

TEST_CASE("Cachew: what a part of a worker brought is not held against the whole one") {
  // 16 cores are needed, 12 are its own. There is room for one worker of seven cores, and three of a second one's.
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 10).job("a", "gpu", 4, kneed(4, 4));
  const auto policy = make_cachew_policy({"cachew", 7000}, {}, 1);
  world.run(*policy, 20);
  REQUIRE(world.workers("a") == 10);
  world.snapshot().nodes[1].allocatable_millicores = 100'000;
  world.run(*policy, 60);
  // From 7 to 14 the batches come 5.8 % faster, from 10 to 14 only 2.3 %; the third worker brings 1.3 %.
  CHECK(world.workers("a") == 14);
}

}  // namespace
}  // namespace sluice::scheduler::testing
