// Rounds of the decision loop in which workers get another size.
#include "operator/decide/decision_loop.h"
#include "operator/testing/decision_loop_harness.h"
#include "src/base/testing/catch.h"

namespace sluice::decide {
namespace {

using namespace testing;

// The job of cluster(), which leaves the size of its workers to Sluice.
observe::ClusterObjects sized_cluster(int replicas) {
  observe::ClusterObjects objects = cluster(replicas);
  json job = training_job();
  job["spec"]["dataWorkers"].erase("resources");
  objects.training_jobs[kVision] = shared(std::move(job));
  return objects;
}

TEST_CASE("the pool is told another size before another number, and people are told of both") {
  Harness harness;
  harness.objects = sized_cluster(0);
  harness.objects.nodes[{"", "n1"}] =
      shared({{"metadata", {{"name", "n1"}}},
              {"status", {{"allocatable", {{"cpu", "600m"}}}, {"conditions", {condition("Ready", "True")}}}}});
  harness.loop.decide_once({});
  REQUIRE(harness.actions.size() == 2);
  CHECK(harness.actions[0].body["spec"]["workerResources"]["requests"]["cpu"] == "500m");
  CHECK(harness.actions[1].body["spec"]["replicas"] == 1);
  REQUIRE(harness.events.size() == 2);
  CHECK(harness.events[0].reason == "WorkersSized");
  CHECK(harness.events[1].reason == "ScaledUp");
}

TEST_CASE("a size that cannot be written is no event, and is ordered again") {
  Harness harness;
  harness.objects = sized_cluster(2);
  harness.measure = [] {
    observe::Observations observations{{}, "no metrics"};
    observations.worker_memory_bytes[{"default", "vision"}] = 3e9;
    return observations;
  };
  harness.outcome = unavailable("the API server is away");
  harness.loop.decide_once({});
  CHECK(harness.actions.size() == 1);
  CHECK(harness.events.empty());
  harness.outcome = {};
  harness.loop.decide_once({});
  CHECK(harness.actions.size() == 2);
  REQUIRE(harness.events.size() == 1);
  CHECK(harness.events[0].reason == "WorkersSized");
}

}  // namespace
}  // namespace sluice::decide
