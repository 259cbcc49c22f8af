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
  pod["spec"]["nodeName"] = "n1";
  pod["status"] = {{"phase", "Running"},
                   {"conditions", {condition("Ready", "True")}},
                   {"podIPs", {{{"ip", "10.0.0.1"}}}},
                   {"containerStatuses", {{{"name", "sluice-worker"}, {"restartCount", 0}}}}};
  return pod;
}

TEST_CASE("a trimmed pod says the same about everything that is read, in a fraction of the bytes") {
  const json whole = running_worker();
  const json pod = trimmed(whole);
  CHECK(Pod(pod).request_millicores() == Pod(whole).request_millicores());
  CHECK(Pod(pod).request_millicores() > 0);
  CHECK(Pod(pod).job() == Pod(whole).job());
  for (const char* path : {"/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/resourceVersion",
                           "/metadata/creationTimestamp", "/metadata/labels", "/metadata/ownerReferences",
                           "/spec/nodeName", "/status/phase", "/status/conditions"}) {
    INFO(path);
    CHECK(pod.at(json::json_pointer(path)) == whole.at(json::json_pointer(path)));
  }
  CHECK(pod.dump().size() * 2 < whole.dump().size());
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
  CHECK(pod["metadata"]["deletionTimestamp"] == "2026-01-01T00:01:00Z");
  CHECK(pod["status"] == whole["status"]);
  CHECK(Pod(pod).request_millicores() == Pod(whole).request_millicores());
}

TEST_CASE("of the init containers' states only the feeder's CPU stays") {
  json whole = running_worker();
  whole["status"]["qosClass"] = "Burstable";
  whole["status"]["initContainerStatuses"] = {
      {{"name", "sluice-bundle"}, {"resources", {{"requests", {{"cpu", "1"}}}}}},
      {{"name", "sluice-feeder"}, {"ready", true}, {"resources", {{"requests", {{"cpu", "250m"}}}}}}};
  const json pod = trimmed(whole);
  CHECK(pod["status"]["qosClass"] == "Burstable");
  const json& states = pod["status"]["initContainerStatuses"];
  CHECK_FALSE(states.at(0).contains("resources"));
  CHECK(states.at(1) == json::parse(R"({"name": "sluice-feeder", "resources": {"requests": {"cpu": "250m"}}})"));
}

TEST_CASE("a pod that is not as it should be is left alone") {
  for (const char* text : {"{}", R"({"metadata":1,"spec":[],"status":"x"})", R"({"spec":{"containers":{"a":1}}})",
                           R"({"spec":{"containers":[1,{}]}})"}) {
    INFO(text);
    CHECK_NOTHROW(trimmed(json::parse(text)));
  }
}

}  // namespace
}  // namespace sluice::api
