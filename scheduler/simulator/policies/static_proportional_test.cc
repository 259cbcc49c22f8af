#include "scheduler/simulator/policies/static_proportional.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("static: each trainer has its share, whatever it needs, and no data workers") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 64);
  world.job("hungry", "gpu", 4, kneed(4, 20)).job("language", "gpu", 2, kneed(2, 0.5));
  const auto policy = make_static_proportional_policy();
  world.run(*policy, 10);
  CHECK(world.local_cores("hungry") == 12);
  CHECK(world.local_cores("language") == 6);
  CHECK(world.workers("hungry") == 0);
  CHECK(world.workers("language") == 0);
  // The closed form: c / kappa = 3 / 20 of full speed.
  CHECK(world.speed("hungry") == Approx(3.0 / 20).epsilon(0.001));
}

TEST_CASE("static: a share is taken of what other pods leave") {
  World world;
  world.node("gpu", 8, 24).job("a", "gpu", 4, kneed(4, 20));
  world.snapshot().nodes[0].requested_by_others_millicores = 4000;
  const auto policy = make_static_proportional_policy();
  world.run(*policy, 1);
  CHECK(world.local_cores("a") == 10);
}

TEST_CASE("static: workers that are there are sent home") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 64).job("a", "gpu", 4, kneed(4, 20));
  world.at("a").workers = {{.name = "left-over", .node = "cpu", .ready = true}};
  world.at("a").allocated_workers = 1;
  const auto policy = make_static_proportional_policy();
  world.run(*policy, 1);
  CHECK(world.workers("a") == 0);
}

}  // namespace
}  // namespace sluice::scheduler::testing
