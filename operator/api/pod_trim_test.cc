#include "operator/api/pod_trim.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "operator/api/pod.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using control::testing::condition;
using control::testing::owner_reference;
using nlohmann::json;

json trimmed(json pod) {
  trim_pod(pod);
  return pod;
}

// The worker pod that the operator itself makes, as it looks when it runs.
json running_worker() {
  json pod = json::parse(std::ifstream("operator/act/testdata/worker_pod.json"));
  pod["metadata"].update({{"name", "vision-worker-0"},
                          {"namespace", "default"},
                          {"uid", "uid-0"},
                          {"resourceVersion", "7"},
                          {"creationTimestamp", "2026-01-01T00:00:00Z"},
                          {"ownerReferences", {owner_reference("DataWorkerPool", "vision", "uid-pool")}}});
  pod["metadata"]["labels"]["sluice.dev/template-hash"] = "h";
  pod["metadata"]["annotations"]["kubernetes.io/psp"] = "restricted";
  pod["spec"]["nodeName"] = "n1";
  const json runs = {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}};
  const json ended = {{"terminated", {{"reason", "Completed"}, {"exitCode", 0}}}};
  pod["status"] = {
      {"phase", "Running"},
      {"qosClass", "Burstable"},
      {"conditions",
       {condition("PodReadyToStartContainers", "True"), condition("Initialized", "True"), condition("Ready", "True"),
        condition("ContainersReady", "True"), condition("PodScheduled", "True")}},
      {"podIPs", {{{"ip", "10.0.0.1"}}}},
      {"initContainerStatuses", {{{"name", "sluice-bundle"}, {"restartCount", 0}, {"state", ended}}}},
      {"containerStatuses",
       {{{"name", "sluice-worker"}, {"restartCount", 0}, {"state", runs}, {"lastState", json::object()}}}}};
  return pod;
}

TEST_CASE("a trimmed pod says the same about everything that is read") {
  const json whole = running_worker();
  const json trimmed_worker = trimmed(whole);
  const Pod before(whole), pod(trimmed_worker);
  CHECK(pod.request_millicores() == before.request_millicores());
  CHECK(pod.request_millicores() > 0);
  CHECK(pod.request_memory_bytes() == before.request_memory_bytes());
  CHECK(pod.is_worker());
  CHECK(pod.job() == "vision");
  CHECK(pod.template_hash() == "h");
  CHECK(pod.key() == before.key());
  CHECK(pod.uid() == before.uid());
  CHECK(pod.resource_version() == before.resource_version());
  CHECK(pod.created() == before.created());
  CHECK(pod.controller().kind == "DataWorkerPool");
  CHECK(pod.controller().name == "vision");
  CHECK(pod.controller_uid() == "uid-pool");
  CHECK(pod.node() == "n1");
  CHECK(pod.phase() == "Running");
  CHECK(pod.ready());
  CHECK(pod.ready_condition().since == before.ready_condition().since);
}

// What nlohmann's values take on a 64-bit machine: a tree of members, each allocated, and texts beyond 15 characters.
std::size_t held_bytes(const json& value) {
  const auto text_bytes = [](const std::string& text) { return text.size() > 15 ? text.size() + 16 : 0; };
  constexpr std::size_t kValue = 16, kText = 48, kObject = 64, kArray = 48, kMember = 80;
  if (value.is_string()) return kText + text_bytes(value.get_ref<const std::string&>());
  std::size_t bytes = value.is_object() ? kObject : value.is_array() ? kArray + kValue * value.size() : 0;
  if (value.is_structured())
    for (const auto& [name, member] : value.items())
      bytes += (value.is_object() ? kMember + kValue + text_bytes(name) : 0) + held_bytes(member);
  return bytes;
}

TEST_CASE("a pod that runs is kept in few bytes: there are ten thousand of them") {
  constexpr std::size_t kMostBytesOfWorker = 4800, kMostBytesOfStranger = 2800;
  CHECK(held_bytes(trimmed(running_worker())) <= kMostBytesOfWorker);

  json stranger = running_worker();
  stranger["metadata"]["labels"] = {{"app", "web"}, {"pod-template-hash", "5d8f"}, {"team", "shop"}};
  stranger["metadata"]["ownerReferences"] = {owner_reference("ReplicaSet", "web-5d8f", "uid-web")};
  stranger["spec"]["containers"][0]["name"] = "web";
  stranger["status"]["containerStatuses"][0]["name"] = "web";
  CHECK(held_bytes(trimmed(stranger)) <= kMostBytesOfStranger);
}

TEST_CASE("a worker that ran out of memory still says so, and nothing else of its end") {
  for (const char* state : {"lastState", "state"}) {
    CAPTURE(state);
    json whole = running_worker();
    whole["status"]["containerStatuses"][0][state] = {
        {"terminated", {{"reason", "OOMKilled"}, {"exitCode", 137}, {"containerID", "containerd://1"}}}};
    const json pod = trimmed(whole);
    CHECK(Pod(pod).worker_ran_out_of_memory());
    CHECK(pod.dump().find("exitCode") == std::string::npos);
    CHECK(Pod(pod).worker_memory_bytes() == std::int64_t{256} << 20);
  }
  const json sound = trimmed(running_worker());
  CHECK_FALSE(Pod(sound).worker_ran_out_of_memory());
}

TEST_CASE("what a pod on its way out, failed or with sidecars says stays, too") {
  json whole = running_worker();
  whole["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  whole["status"] = {{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "low on memory"}};
  whole["spec"]["overhead"] = {{"cpu", "100m"}};
  whole["spec"]["initContainers"] = {
      {{"name", "sidecar"}, {"restartPolicy", "Always"}, {"resources", {{"requests", {{"cpu", "300m"}}}}}}};
  const json pod = trimmed(whole);
  CHECK(Pod(pod).deleting());
  CHECK(Pod(pod).failed());
  CHECK(Pod(pod).reason() == "Evicted");
  CHECK(Pod(pod).request_millicores() == Pod(whole).request_millicores());
}

TEST_CASE("of the init containers' states only the feeder's CPU stays") {
  json whole = running_worker();
  whole["metadata"]["labels"]["sluice.dev/component"] = "trainer";
  whole["status"]["initContainerStatuses"] = {
      {{"name", "sluice-bundle"}, {"resources", {{"requests", {{"cpu", "1"}}}}}},
      {{"name", "sluice-feeder"},
       {"ready", true},
       {"started", true},
       {"resources", {{"requests", {{"cpu", "250m"}}}}}}};
  const json pod = trimmed(whole);
  CHECK(pod["status"]["qosClass"] == "Burstable");
  const json& states = pod["status"]["initContainerStatuses"];
  CHECK(states ==
        json::parse(R"([{"name": "sluice-feeder", "started": true, "resources": {"requests": {"cpu": "250m"}}}])"));
}

TEST_CASE("what keeps a pod from its node, and a feeder from its CPU, stays") {
  json whole = running_worker();
  whole["spec"].erase("nodeName");
  whole["spec"]["nodeSelector"] = {{"disk", "fast"}};
  whole["status"] = json::parse(R"({"phase": "Pending", "nominatedNodeName": "n2", "conditions": [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: 3 Insufficient cpu."},
    {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}]})");
  const json pod = trimmed(whole);
  CHECK(Pod(pod).hindrance()->message == "0/3 nodes: 3 Insufficient cpu.");
  CHECK(Pod(pod).lacks_cpu_or_memory());
  CHECK(Pod(pod).nominated_node() == "n2");
  CHECK(Pod(pod).node_rules().text() == Pod(whole).node_rules().text());
  CHECK(pod["status"]["conditions"].at(1) == whole["status"]["conditions"].at(1));
}

TEST_CASE("a worker that has lost its labels is still its pool's, and says why it does not start") {
  json whole = running_worker();
  whole["metadata"]["labels"] = {{"app", "web"}};
  whole["status"]["conditions"] = {condition("Ready", "False")};
  whole["status"]["containerStatuses"][0]["state"] = {{"waiting", {{"reason", "ErrImagePull"}}}};
  const json pod = trimmed(whole);
  CHECK(Pod(pod).controller_uid() == "uid-pool");
  CHECK(Pod(pod).hindrance()->reason == "ErrImagePull");
}

TEST_CASE("a pod that is resized in place asks for what its node holds for it") {
  struct Case {
    const char* situation;
    const char* condition;
    const char* has;
    std::int64_t want_millicores, want_mebibytes;
  };
  const Case test = GENERATE(
      Case{"no resize", R"({"type": "Ready", "status": "True"})", R"({"cpu": "1", "memory": "1Mi"})", 500, 256},
      Case{"it grows, and is to get it", R"({"type": "PodResizeInProgress", "status": "True"})",
           R"({"cpu": "250m", "memory": "128Mi"})", 500, 256},
      Case{"it shrinks", R"({"type": "PodResizeInProgress", "status": "True"})", R"({"cpu": "2", "memory": "1Gi"})",
           2000, 1024},
      Case{"its node has no room now", R"({"type": "PodResizePending", "status": "True", "reason": "Deferred"})",
           R"({"cpu": "250m", "memory": "1Gi"})", 500, 1024},
      Case{"its node can never hold it", R"({"type": "PodResizePending", "status": "True", "reason": "Infeasible"})",
           R"({"cpu": "250m"})", 250, 256},
      Case{"it was", R"({"type": "PodResizePending", "status": "False", "reason": "Infeasible"})", R"({"cpu": "2"})",
           500, 256},
      Case{"odd", R"({"type": "PodResizePending", "status": "True", "reason": "Infeasible"})", R"([{"cpu": 7}])", 500,
           256});
  CAPTURE(test.situation);
  json whole = running_worker();
  const json& asks = whole["spec"]["containers"][0]["resources"]["requests"];
  REQUIRE(asks == json::parse(R"({"cpu": "500m", "memory": "256Mi"})"));
  whole["status"]["conditions"] = json::array({json::parse(test.condition)});
  whole["status"]["containerStatuses"][0]["resources"] = {{"requests", json::parse(test.has)}};
  const json pod = trimmed(whole);
  CHECK(Pod(pod).request_millicores() == test.want_millicores);
  CHECK(Pod(pod).request_memory_bytes() == test.want_mebibytes << 20);
}

TEST_CASE("an init container counts as before, whether it stays or not") {
  const char* const large = R"([{"name": "fetch", "resources": {"requests": {"cpu": "8", "memory": "1Mi"}}}])";
  const char* const thirsty = R"([{"name": "fetch", "resources": {"requests": {"cpu": "1m", "memory": "8Gi"}}}])";
  const char* const small = R"([{"name": "fetch", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}])";
  const char* const device = R"([{"name": "fetch", "resources": {"limits": {"nvidia.com/gpu": "1"}}}])";
  const char* const beside = R"([{"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1m"}}},
                                 {"name": "fetch", "resources": {"requests": {"cpu": "500m"}}}])";
  const auto [initial, stays] = GENERATE_COPY(std::pair{large, true}, std::pair{thirsty, true}, std::pair{small, false},
                                              std::pair{device, true}, std::pair{beside, true});
  CAPTURE(initial);
  json whole = running_worker();
  whole["spec"]["initContainers"] = json::parse(initial);
  const json pod = trimmed(whole);
  CHECK(pod["spec"].contains("initContainers") == stays);
  CHECK(Pod(pod).request_millicores() == Pod(whole).request_millicores());
  CHECK(Pod(pod).request_memory_bytes() == Pod(whole).request_memory_bytes());
  CHECK(Pod(pod).devices() == Pod(whole).devices());
}

TEST_CASE("of a container's ports those of the node stay, and of its limits the devices") {
  json whole = running_worker();
  whole["spec"]["containers"][0]["name"] = "web";
  whole["spec"]["containers"][0]["ports"] = {{{"containerPort", 80}}, {{"containerPort", 9100}, {"hostPort", 9100}}};
  whole["spec"]["containers"][0]["resources"] = {{"limits", {{"cpu", "2"}, {"nvidia.com/gpu", "1"}}}};
  const json pod = trimmed(whole);
  CHECK(pod["spec"]["containers"] ==
        json::parse(R"([{"ports": [{"hostPort": 9100}], "resources": {"limits": {"nvidia.com/gpu": "1"}}}])"));
  CHECK(Pod(pod).devices() == Pod(whole).devices());
}

TEST_CASE("a pod that is not as it should be is left alone") {
  for (const char* text :
       {"{}", R"({"metadata":1,"spec":[],"status":"x"})", R"({"spec":{"containers":{"a":1}}})",
        R"({"spec":{"containers":[1,{}]}})", R"({"metadata":{"labels":7,"ownerReferences":[7]}})",
        R"({"spec":{"containers":[{"resources":7,"ports":[7]},{"resources":{"requests":7,"limits":7},"ports":7}]}})",
        R"({"status":{"conditions":[7],"containerStatuses":[7,{"state":7},{"state":{"terminated":7}}]}})"}) {
    INFO(text);
    CHECK_NOTHROW(trimmed(json::parse(text)));
  }
}

}  // namespace
}  // namespace sluice::api
