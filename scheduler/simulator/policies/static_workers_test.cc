#include "scheduler/simulator/policies/static_workers.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("fixed loader processes: guaranteed up to the share, never more than the processes can use") {
  struct Row {
    const char* situation;
    int host_cores, per_gpu;
    std::int64_t want_request, want_limit;
  };
  const Row rows[] = {
      {"three cores per GPU, four processes: the fourth lives off idle CPU", 24, 4, 6000, 8000},
      {"six cores per GPU, four processes: two cores per GPU stay unused", 48, 4, 8000, 8000},
      {"one process", 24, 1, 2000, 2000},
      {"none: the trainer's own thread is not counted here", 24, 0, 0, 0},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    World world;
    world.node("gpu", 8, row.host_cores).job("a", "gpu", 2, kneed(2, 20));
    const auto policy = make_static_workers_policy(row.per_gpu);
    world.run(*policy, 1);
    CHECK(world.plan().jobs[0].local == std::vector<LocalCpu>{{"gpu", row.want_request, row.want_limit}});
    CHECK(world.workers("a") == 0);
  }
}

TEST_CASE("fixed loader processes: what a job needs makes no difference") {
  World world;
  world.node("gpu", 8, 48).job("hungry", "gpu", 4, kneed(4, 30)).job("language", "gpu", 4, kneed(4, 0.5));
  const auto policy = make_static_workers_policy();
  world.run(*policy, 5);
  CHECK(world.local_cores("hungry") == world.local_cores("language"));
}

}  // namespace
}  // namespace sluice::scheduler::testing
