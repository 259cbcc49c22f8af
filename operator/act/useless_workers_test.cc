// Workers of a pool that hold CPU and serve no trainer.
#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/testing/pool_steps.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::field;
using namespace control::testing;
using nlohmann::json;

TEST_CASE("workers of an earlier template that never became ready do not block their replacement") {
  FakeCluster cluster = cluster_with_pool(2);
  PoolMemory memory;
  run(cluster, memory);
  cluster.at(kube::kDataWorkerPools, "vision")["spec"]["template"]["spec"]["containers"][0]["image"] = "corrected";
  CHECK(writes_to_pods(run(cluster, memory)) ==
        std::vector<std::string>{"delete Pod default/vision-worker-0", "delete Pod default/vision-worker-1",
                                 "create Pod default/vision-worker-2", "create Pod default/vision-worker-3"});
  cluster.finish_deletions();
  make_ready(cluster);
  CHECK(writes_to_pods(run(cluster, memory)).empty());
}

TEST_CASE("a worker that cannot start gives its CPU back after a minute, says why, and is tried again later") {
  struct Case {
    const char* status;
    const char* want_reason;
  };
  const Case test = GENERATE(
      Case{R"({"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no room"}]})",
           "Unschedulable"},
      Case{R"({"containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff","message":"no room"}}}]})",
           "ImagePullBackOff"},
      Case{R"({"initContainerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff","message":"no room"}}}]})",
           "CrashLoopBackOff"});
  FakeCluster cluster = cluster_with_pool(1);
  PoolMemory memory;
  run(cluster, memory);
  cluster.at(kube::kPods, "vision-worker-0")["status"] = json::parse(test.status);
  const PoolStep first = run(cluster, memory, 100, kNow + 1);
  CHECK(writes_to_pods(first).empty());
  REQUIRE(first.again_after);
  CHECK(*first.again_after <= std::chrono::seconds(61));
  CHECK(writes_to_pods(run(cluster, memory, 100, kNow + 60)).empty());
  CHECK(writes_to_pods(run(cluster, memory, 100, kNow + 62)) ==
        std::vector<std::string>{"delete Pod default/vision-worker-0"});
  cluster.finish_deletions();
  CHECK(writes_to_pods(run(cluster, memory, 100, kNow + 63)).empty());
  const json ready = field(cluster.at(kube::kDataWorkerPools, "vision"), "/status/conditions").at(0);
  CHECK(ready["reason"] == test.want_reason);
  CHECK_THAT(ready["message"].get<std::string>(), Catch::Contains("vision-worker-0") && Catch::Contains("no room"));
  CHECK(writes_to_pods(run(cluster, memory, 100, kNow + 68)) ==
        std::vector<std::string>{"create Pod default/vision-worker-0"});
  make_ready(cluster);
  run(cluster, memory, 100, kNow + 80);
  CHECK(field(cluster.at(kube::kDataWorkerPools, "vision"), "/status/conditions").at(0)["reason"] == "AllReady");
}

TEST_CASE("a worker that waits at a scheduling gate keeps its place in the queue, and the pool says where it waits") {
  FakeCluster cluster = cluster_with_pool(1);
  PoolMemory memory;
  run(cluster, memory);
  json& worker = cluster.at(kube::kPods, "vision-worker-0");
  worker["spec"]["schedulingGates"] = json::array({{{"name", "kueue.x-k8s.io/admission"}}});
  worker["status"] = {
      {"conditions", json::array({{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "SchedulingGated"}}})}};
  for (const double seconds : {1, 100, 1000}) CHECK(writes_to_pods(run(cluster, memory, 100, kNow + seconds)).empty());
  const json ready = field(cluster.at(kube::kDataWorkerPools, "vision"), "/status/conditions").at(0);
  CHECK(ready["reason"] == "WaitingForQuota");
  CHECK_THAT(ready["message"].get<std::string>(),
             Catch::Contains("vision-worker-0") && Catch::Contains("kueue.x-k8s.io/admission"));
}

TEST_CASE("a worker that no scheduler looks at stays, and the pool says for whom it waits after a minute") {
  FakeCluster cluster = cluster_with_pool(1);
  PoolMemory memory;
  run(cluster, memory);
  json& worker = cluster.at(kube::kPods, "vision-worker-0");
  worker["spec"]["schedulerName"] = "volcano";
  const auto reason = [&] {
    return field(cluster.at(kube::kDataWorkerPools, "vision"), "/status/conditions").at(0)["reason"];
  };
  const PoolStep first = run(cluster, memory, 100, kNow + 1);
  REQUIRE(first.again_after);
  CHECK(*first.again_after <= std::chrono::seconds(61));
  run(cluster, memory, 100, kNow + 60);
  CHECK(reason() == "Scaling");
  CHECK(writes_to_pods(run(cluster, memory, 100, kNow + 62)).empty());
  CHECK(reason() == "WaitingForScheduler");
  CHECK_THAT(
      field(cluster.at(kube::kDataWorkerPools, "vision"), "/status/conditions").at(0)["message"].get<std::string>(),
      Catch::Contains("vision-worker-0") && Catch::Contains("volcano"));
  CHECK(writes_to_pods(run(cluster, memory, 100, kNow + 1000)).empty());
  worker["spec"]["nodeName"] = "n1";
  make_ready(cluster);
  run(cluster, memory, 100, kNow + 1001);
  CHECK(reason() == "AllReady");
  CHECK(memory.unplaced_since.empty());
}

TEST_CASE("a worker whose labels were taken away is replaced: nothing finds it any more") {
  FakeCluster cluster = running(2);
  PoolMemory memory;
  cluster.at(kube::kPods, "vision-worker-1")["metadata"]["labels"].erase("sluice.dev/component");
  CHECK(writes_to_pods(run(cluster, memory)) == std::vector<std::string>{"delete Pod default/vision-worker-1"});
  cluster.finish_deletions();
  CHECK(writes_to_pods(run(cluster, memory, 100, kNow + 6)) ==
        std::vector<std::string>{"create Pod default/vision-worker-1"});
}

TEST_CASE("where a webhook takes a label of each new worker, workers are made less and less often, and it is told of") {
  const std::string label = GENERATE("sluice.dev/job", "sluice.dev/component", "sluice.dev/template-hash");
  CAPTURE(label);
  FakeCluster cluster = cluster_with_pool(1);
  PoolMemory memory;
  int creations = 0;
  for (int second = 0; second < 600; ++second) {
    for (const std::string& write : writes_to_pods(run(cluster, memory, 100, kNow + second)))
      creations += static_cast<int>(write.starts_with("create"));
    cluster.finish_deletions();
    for (const auto& [key, pod] : cluster.all(kube::kPods))
      cluster.at(kube::kPods, key.name)["metadata"]["labels"].erase(label);
  }
  CHECK(creations >= 3);
  CHECK(creations <= 9);
  const json ready = field(cluster.at(kube::kDataWorkerPools, "vision"), "/status/conditions").at(0);
  CHECK(ready["reason"] == "WorkerLabelsTaken");
  CHECK_THAT(ready["message"].get<std::string>(), Catch::Contains(label) && Catch::Contains("webhook"));
}

TEST_CASE("a worker that is done is replaced, though a sidecar that a webhook has added keeps its pod running") {
  FakeCluster cluster = running(1);
  PoolMemory memory;
  json& worker = cluster.at(kube::kPods, "vision-worker-0");
  const auto run_with = [&](const char* states) {
    worker["status"] = json::parse(states);
    return run(cluster, memory);
  };
  const PoolStep serves = run_with(
      R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[
          {"name":"istio-proxy","state":{"terminated":{"reason":"Completed"}}},{"name":"sluice-worker","state":{"running":{}}}]})");
  CHECK(writes_to_pods(serves).empty());
  const PoolStep failed = run_with(
      R"({"phase":"Running","containerStatuses":[
          {"name":"istio-proxy","state":{"running":{}}},{"name":"sluice-worker","state":{"terminated":{"reason":"Error"}}}]})");
  CHECK(writes_to_pods(failed).empty());  // the kubelet starts it again
  const PoolStep done = run_with(
      R"({"phase":"Running","containerStatuses":[
          {"name":"istio-proxy","state":{"running":{}}},{"name":"sluice-worker","state":{"terminated":{"reason":"Completed"}}}]})");
  CHECK(writes_to_pods(done) == Writes{"delete Pod default/vision-worker-0"});
  REQUIRE(done.events.size() == 1);
  CHECK(done.events[0].reason == "WorkerEnded");
}

TEST_CASE("a stranger's pod with a worker's name costs the pool nothing but the name, and is told of") {
  FakeCluster cluster = cluster_with_pool(1);
  cluster.put(kube::kPods,
              {{"metadata", {{"name", "vision-worker-0"}, {"namespace", "default"}, {"uid", "stranger"}}}});
  PoolMemory memory;
  const PoolStep step = run(cluster, memory);
  CHECK(writes_to_pods(step) == std::vector<std::string>{"create Pod default/vision-worker-1"});
  REQUIRE(step.events.size() == 2);
  CHECK(step.events[0].resource == kube::kDataWorkerPools);
  CHECK(step.events[1].resource == kube::kTrainingJobs);
  CHECK(step.events[1].uid == "uid-vision");
  CHECK(step.events[1].reason == "WorkerNameTaken");
  CHECK_THAT(step.events[1].note, Catch::Contains("vision-worker-0") && Catch::Contains("Delete the pod"));
  CHECK(run(cluster, memory).events.empty());
}

TEST_CASE("a pod of an earlier pool of the job's name is no stranger's") {
  FakeCluster cluster = cluster_with_pool(1);
  const json owners = json::array({owner_reference("DataWorkerPool", "vision", "uid-earlier")});
  cluster.put(
      kube::kPods,
      {{"metadata",
        {{"name", "vision-worker-0"}, {"namespace", "default"}, {"uid", "left over"}, {"ownerReferences", owners}}}});
  PoolMemory memory;
  const PoolStep step = run(cluster, memory);
  CHECK(writes_to_pods(step) == std::vector<std::string>{"create Pod default/vision-worker-1"});
  CHECK(step.events.empty());
}

}  // namespace
}  // namespace sluice::act
