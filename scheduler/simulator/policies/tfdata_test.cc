#include "scheduler/simulator/policies/tfdata.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("tf.data: one worker to measure with, then what its own CPU leaves of the demand") {
  struct Row {
    const char* situation;
    double knee_cores_per_gpu;
    int want_workers;
  };
  const Row rows[] = {
      {"8 cores per GPU, 3 of them its own", 8, 26},
      {"20", 20, 89},
      {"its own CPU does: the service still has one worker", 2, 1},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    World world;
    world.node("gpu", 8, 24).node("cpu", 0, 200).job("a", "gpu", 4, kneed(4, row.knee_cores_per_gpu));
    const auto policy = make_tfdata_policy();
    world.run(*policy, 2);
    CHECK(world.workers("a") == 1);
    world.run(*policy, 20);
    CHECK(world.workers("a") == row.want_workers);
  }
}

TEST_CASE("tf.data: it follows a job that changes, up and down") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 200).job("a", "gpu", 4, kneed(4, 8));
  const auto policy = make_tfdata_policy();
  world.run(*policy, 20);
  world.physics("a") = kneed(4, 20);
  world.run(*policy, 5);
  CHECK(world.workers("a") == 89);
  world.physics("a") = kneed(4, 2);
  world.run(*policy, 5);
  CHECK(world.workers("a") == 1);
}

TEST_CASE("tf.data: without metrics the number stays") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 200).job("a", "gpu", 4, kneed(4, 8));
  const auto policy = make_tfdata_policy();
  world.run(*policy, 20);
  world.at("a").observation = {std::nullopt, "away"};
  CHECK(policy->decide(world.snapshot()).jobs[0].workers == 26);
}

TEST_CASE(
    "tf.data: the metrics are the job's, so that a gang of many ranks wants as many workers as one that does as much") {
  for (const int ranks : {1, 4}) {
    INFO(ranks);
    World world;
    world.node("gpu", 8, 24).node("cpu", 0, 200).job("a", "gpu", 4, kneed(4, 8));
    world.at("a").ranks = ranks;
    const auto policy = make_tfdata_policy();
    world.run(*policy, 20);
    CHECK(world.workers("a") == 26);
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
