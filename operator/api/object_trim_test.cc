#include "operator/api/object_trim.h"

#include <nlohmann/json.hpp>

#include "operator/api/node.h"
#include "operator/api/trainer_job.h"
#include "operator/api/trainer_template.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

json node_with_images(int images) {
  json node = json::parse(R"({"kind": "Node", "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7",
      "labels": {"topology.kubernetes.io/zone": "a", "node.kubernetes.io/instance-type": "m6i.large", "cloud.google.com/gke-spot": "true"},
      "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
    "spec": {"unschedulable": true, "podCIDR": "10.0.0.0/24", "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "7910m", "memory": "30Gi", "nvidia.com/gpu": "2"}, "capacity": {"cpu": "8"},
      "conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True", "message": "posts status"}],
      "nodeInfo": {"kubeletVersion": "v1.34.4"}}})");
  for (int image = 0; image < images; ++image)
    node["status"]["images"].push_back(
        {{"names", {"registry.example/image-" + std::to_string(image)}}, {"sizeBytes", 1}});
  return node;
}

TEST_CASE("a trimmed node says the same, and the images that it holds cost nothing") {
  const json whole = node_with_images(50);
  json trimmed = whole;
  trim_node(trimmed);
  const Node before(whole), after(trimmed);
  CHECK(after.name() == before.name());
  CHECK(after.uid() == before.uid());
  CHECK(after.resource_version() == before.resource_version());
  CHECK(after.allocatable_millicores() == 7910);
  CHECK(after.allocatable_memory_bytes() == before.allocatable_memory_bytes());
  CHECK(after.gpus() == 2);
  CHECK(after.instance_type() == "m6i.large");
  CHECK(after.spot());
  CHECK(after.condition_is_true("Ready"));
  CHECK_FALSE(after.schedulable());
  CHECK(after.repelling_taints().size() == 1);
  CHECK(after.label_if_any("topology.kubernetes.io/zone") == "a");
  json without_images = node_with_images(0);
  trim_node(without_images);
  CHECK(trimmed == without_images);
}

TEST_CASE("a trimmed trainer's Job says the same about its state, and of its template only the ports") {
  const json whole = json::parse(R"({"kind": "Job", "metadata": {"name": "vision", "uid": "u",
      "annotations": {"sluice.dev/feeder": "true", "sluice.dev/suspend": "false", "sluice.dev/restarts": "2"}},
    "spec": {"suspend": true, "completions": 2, "parallelism": 2, "ttlSecondsAfterFinished": 60, "template": {
      "metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": true, "volumes": [{"name": "data"}],
      "containers": [{"name": "trainer", "image": "i", "ports": [{"containerPort": 29500}]}],
      "initContainers": [{"name": "sluice-feeder", "ports": [{"containerPort": 20000}, {"containerPort": 20001}]}]}}},
    "status": {"active": 1, "ready": 1, "succeeded": 1, "startTime": "2026-01-01T00:00:00Z",
      "conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": "2026-01-01T01:00:00Z"}]}})");
  json trimmed = whole;
  trim_trainer_job(trimmed);
  const TrainerJob before(whole), after(trimmed);
  CHECK(after.uid() == before.uid());
  CHECK(after.suspended());
  CHECK(after.completions() == 2);
  CHECK(after.removed_when_over());
  CHECK(after.has_feeder() == true);
  CHECK(after.asked_to_suspend() == false);
  CHECK(after.restarts() == 2);
  CHECK(after.failed_by_pods());
  CHECK(after.status() == before.status());
  const json& pod = after.pod_template().at("spec");
  CHECK(member(pod, "hostNetwork") == true);
  CHECK(declared_ports(pod) == declared_ports(before.pod_template().at("spec")));
  CHECK(trimmed.dump().find("volumes") == std::string::npos);
  CHECK(trimmed.dump().find("image") == std::string::npos);
}

TEST_CASE("a TrainingJob that kubectl has applied is not kept twice") {
  json job = control::testing::training_job();
  const json before = job;
  job["metadata"]["annotations"] = {{"kubectl.kubernetes.io/last-applied-configuration", before.dump()}, {"mine", "1"}};
  trim_training_job(job);
  CHECK(job["metadata"]["annotations"] == json{{"mine", "1"}});
  job["metadata"].erase("annotations");
  CHECK(job == before);
}

TEST_CASE("an object that is not as it should be does no harm") {
  for (const char* text :
       {"{}", "[]", "7", R"({"metadata":1,"spec":[],"status":"x"})", R"({"spec":{"template":7}})",
        R"({"spec":{"template":{"spec":{"containers":7}}}})", R"({"spec":{"template":{"spec":{"containers":[7,{}]}}}})",
        R"({"status":{"conditions":{"a":1}}})", R"({"status":{"conditions":[7]}})",
        R"({"metadata":{"annotations":[]}})"}) {
    INFO(text);
    for (void (*trim)(json&) : {trim_node, trim_trainer_job, trim_training_job}) {
      json object = json::parse(text);
      CHECK_NOTHROW(trim(object));
    }
  }
}

}  // namespace
}  // namespace sluice::api
