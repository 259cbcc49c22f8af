#include "scheduler/policies/knee_proportional.h"

#include "scheduler/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("knee-proportional: plenty of CPU, every job runs at full speed") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 300);
  world.job("a", "gpu", 4, kneed(4, 20)).job("b", "gpu", 2, kneed(2, 8)).job("c", "gpu", 2, kneed(2, 0.5));
  KneeProportionalPolicy policy{{}};
  world.run(policy, 20);
  for (const char* name : {"a", "b", "c"}) {
    INFO(name);
    CHECK(world.speed(name) > 0.9);
  }
  CHECK(world.workers("c") == 0);
}

TEST_CASE("knee-proportional: scarce CPU, all are cut by one factor") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 40);
  world.job("a", "gpu", 4, kneed(4, 20)).job("b", "gpu", 4, kneed(4, 10));
  KneeProportionalPolicy policy{{}};
  world.run(policy, 40);
  CHECK(world.workers("a") + world.workers("b") >= 38);
  CHECK(world.workers("a") + world.workers("b") <= 40);
  CHECK(world.speed("a") == Approx(world.speed("b")).epsilon(0.1));
  CHECK(world.speed("a") == Approx((24 + 0.77 * 40) / 120).epsilon(0.1));
}

TEST_CASE("knee-proportional: CPU that one trainer leaves on a host goes to the other before any worker") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 300);
  world.job("hungry", "gpu", 4, kneed(4, 5)).job("language", "gpu", 4, kneed(4, 0.5));
  KneeProportionalPolicy policy{{}};
  world.run(policy, 20);
  CHECK(world.local_cores("hungry") > 20);
  CHECK(world.workers("hungry") <= 6);
  CHECK(world.speed("hungry") > 0.9);
}

TEST_CASE("knee-proportional: a job without metrics keeps its share and its workers") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 300).job("a", "gpu", 4, kneed(4, 20));
  KneeProportionalPolicy policy{{}};
  const Plan plan = policy.decide(world.snapshot());
  CHECK(plan.jobs[0].local == std::vector<LocalCpu>{{"gpu", 12000, 12000}});
  CHECK(plan.jobs[0].workers == 0);
}

}  // namespace
}  // namespace sluice::scheduler::testing
