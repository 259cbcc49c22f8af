#include "scheduler/simulator/policies/burst.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("burst: the share is requested, and the limit is the whole host") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 64).job("a", "gpu", 2, kneed(2, 20)).job("b", "gpu", 1, kneed(1, 20));
  const auto policy = make_burst_policy();
  world.run(*policy, 3);
  CHECK(world.plan().jobs[0].local == std::vector<LocalCpu>{{"gpu", 6000, 24000}});
  CHECK(world.plan().jobs[1].local == std::vector<LocalCpu>{{"gpu", 3000, 24000}});
  CHECK(world.workers("a") == 0);
}

TEST_CASE("burst: a gang on two hosts bursts on each") {
  World world;
  world.node("gpu-0", 8, 24).node("gpu-1", 8, 48).job("a", "gpu-0", 8, kneed(16, 20));
  world.at("a").hosts.push_back({.node = "gpu-1", .gpus = 8});
  const auto policy = make_burst_policy();
  world.run(*policy, 1);
  CHECK(world.plan().jobs[0].local == std::vector<LocalCpu>{{"gpu-0", 24000, 24000}, {"gpu-1", 48000, 48000}});
}

TEST_CASE("burst: feeders on a node that is not known keep what they have") {
  World world;
  world.node("gpu", 8, 24).job("a", "gpu", 2, kneed(2, 20));
  world.at("a").hosts[0] = {.node = "", .gpus = 2, .request_millicores = 700, .limit_millicores = 700};
  const auto policy = make_burst_policy();
  world.run(*policy, 1);
  CHECK(world.plan().jobs[0].local == std::vector<LocalCpu>{{"", 700, 700}});
}

}  // namespace
}  // namespace sluice::scheduler::testing
