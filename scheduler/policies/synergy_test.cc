#include "scheduler/policies/synergy.h"

#include "scheduler/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("Synergy: the share until the profile is known, then the host's CPU by need") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 200);
  world.job("hungry", "gpu", 4, kneed(4, 20)).job("language", "gpu", 4, kneed(4, 0.5));
  SynergyPolicy policy{{}};
  world.run(policy, 1);
  CHECK(world.local_cores("hungry") == 12);
  CHECK(world.local_cores("language") == 12);
  world.run(policy, 10);
  // The language model needs 2 cores; with headroom, in whole cores, 3.
  CHECK(world.local_cores("language") == Approx(3).margin(1));
  CHECK(world.local_cores("hungry") + world.local_cores("language") == 24);
  CHECK(world.speed("language") > 0.95);
  CHECK(world.workers("hungry") == 0);
}

TEST_CASE("Synergy: two jobs that both need more have their shares") {
  World world;
  world.node("gpu", 8, 24).job("a", "gpu", 4, kneed(4, 20)).job("b", "gpu", 4, kneed(4, 10));
  SynergyPolicy policy{{}};
  world.run(policy, 10);
  CHECK(world.local_cores("a") == 12);
  CHECK(world.local_cores("b") == 12);
}

TEST_CASE("Synergy: CPU does not move between hosts") {
  World world;
  world.node("gpu-0", 8, 24).node("gpu-1", 8, 24);
  world.job("hungry", "gpu-0", 8, kneed(8, 20)).job("language", "gpu-1", 8, kneed(8, 0.5));
  SynergyPolicy policy{{}};
  world.run(policy, 10);
  CHECK(world.local_cores("hungry") == 24);
  CHECK(world.workers("hungry") == 0);
}

}  // namespace
}  // namespace sluice::scheduler::testing
