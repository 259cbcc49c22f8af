#include "scheduler/simulator/policies/pecan.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

World one_job(double knee_cores_per_gpu, int cpu_cores) {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, cpu_cores).job("a", "gpu", 4, kneed(4, knee_cores_per_gpu));
  return world;
}

TEST_CASE("Pecan as in the paper: starts remotely, ends with all local workers and the remote ones that pay") {
  struct Row {
    const char* situation;
    double knee_cores_per_gpu;
    int want_remote_pods;
    double want_speed_above;
  };
  const Row rows[] = {
      {"needs 8 cores per GPU and has 3 on its host", 8, 28, 0.85},
      {"a language model: its own CPU does", 0.5, 0, 0.99},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    World world = one_job(row.knee_cores_per_gpu, 300);
    const auto policy = make_pecan_policy(7000, {}, 1);
    world.run(*policy, 1);
    CHECK(world.workers("a") == 7);
    CHECK(world.local_cores("a") == 0);
    world.run(*policy, 400);
    CHECK(world.workers("a") == row.want_remote_pods);
    CHECK(world.local_cores("a") == 12);
    CHECK(world.speed("a") > row.want_speed_above);
  }
}

TEST_CASE("Pecan with its local workers from the start: never slower than on its share") {
  World world = one_job(8, 300);
  const auto policy = make_pecan_policy(7000, {.start_local = 10}, 1);
  const double share_speed = 12.0 / 32;
  for (int i = 0; i < 100; ++i) {
    world.run(*policy, 1);
    CHECK(world.speed("a") > 0.99 * share_speed);
    CHECK(world.local_cores("a") == 12);
  }
  CHECK(world.speed("a") > 0.85);
}

TEST_CASE("Pecan: a job waits for its first remote worker, and uses it when it comes") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 0).job("a", "gpu", 8, kneed(8, 8));
  const auto policy = make_pecan_policy(7000, {.start_local = 10}, 1);
  world.run(*policy, 100);
  CHECK(world.workers("a") == 0);
  world.snapshot().nodes[1].allocatable_millicores = 100'000;
  world.run(*policy, 100);
  CHECK(world.workers("a") >= 21);
}

TEST_CASE("Pecan: local workers are tenths of the share, guaranteed and as a limit") {
  World world = one_job(4, 300);
  const auto policy = make_pecan_policy(7000, {}, 1);
  for (int i = 0; i < 200; ++i) {
    world.run(*policy, 1);
    const LocalCpu& local = world.plan().jobs[0].local[0];
    CHECK(local.request_millicores % 1200 == 0);
    CHECK(local.request_millicores == local.limit_millicores);
    CHECK(local.limit_millicores <= 12000);
  }
}

TEST_CASE("Pecan: where the pool has no third worker, local ones are tried beside the two") {
  World world = one_job(20, 14);
  const auto policy = make_pecan_policy(7000, {}, 1);
  world.run(*policy, 100);
  CHECK(world.workers("a") == 14);
  CHECK(world.local_cores("a") == 12);
}

}  // namespace
}  // namespace sluice::scheduler::testing
