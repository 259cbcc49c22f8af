// API objects for tests: as the API server would show them.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/fields.h"
#include "operator/config.h"
#include "src/kube/store.h"

namespace sluice::control::testing {

inline Config test_config() {
  Config config;
  config.image = "registry.example/sluice:1";
  return config;
}

inline const kube::ObjectKey kVision{"default", "vision"};

// The TrainingJob of that key, with defaults filled in.
inline nlohmann::json training_job() {
  return nlohmann::json::parse(R"({
    "apiVersion": "sluice.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "vision", "namespace": "default", "uid": "uid-vision", "resourceVersion": "5", "generation": 1,
                 "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
      "trainer": {"replicas": 1, "template": {"spec": {
        "imagePullSecrets": [{"name": "pull"}],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "photos"}},
                    {"name": "scratch", "emptyDir": {}}, {"name": "other", "emptyDir": {}}],
        "containers": [{"name": "trainer", "image": "registry.example/trainer:7", "imagePullPolicy": "Never",
          "command": ["python", "train.py"],
          "env": [{"name": "EPOCHS", "value": "3"}],
          "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "2"}, "requests": {"cpu": "2"}},
          "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "scratch", "mountPath": "/tmp"}]}]}}},
      "feeder": {"resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": "500m"}}, "arena": "64Mi"},
      "dataWorkers": {"min": 0, "max": 8, "placement": "Auto",
                      "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}},
      "mode": "Auto", "priority": 0, "weight": 100, "suspend": false}})");
}

// The entry of this name, of containers, variables, volumes or mounts; null: there is none.
inline nlohmann::json named(const nlohmann::json& list, const std::string& name) {
  for (const nlohmann::json& entry : list)
    if (api::text_field(entry, "/name") == name) return entry;
  return nullptr;
}

inline std::string variable(const nlohmann::json& container, const std::string& name) {
  return api::text_field(named(api::field(container, "/env"), name), "/value", "<unset>");
}

inline nlohmann::json owner_reference(const std::string& kind, const std::string& name, const std::string& uid) {
  return {{"apiVersion", "sluice.dev/v1alpha1"}, {"kind", kind}, {"name", name}, {"uid", uid}, {"controller", true}};
}

// The batch/v1 Job of the TrainingJob above, with one active pod and so many that are ready.
inline nlohmann::json job_with_ready_pods(int ready) {
  return {{"metadata",
           {{"name", "vision"},
            {"namespace", "default"},
            {"uid", "uid-job"},
            {"ownerReferences", {owner_reference("TrainingJob", "vision", "uid-vision")}}}},
          {"status", {{"ready", ready}, {"active", 1}}}};
}

// DataWorkerPool default/vision of the TrainingJob above.
inline nlohmann::json pool(int replicas) {
  return {{"apiVersion", "sluice.dev/v1alpha1"},
          {"kind", "DataWorkerPool"},
          {"metadata",
           {{"name", "vision"},
            {"namespace", "default"},
            {"uid", "uid-pool"},
            {"resourceVersion", "6"},
            {"generation", 4},
            {"ownerReferences", {owner_reference("TrainingJob", "vision", "uid-vision")}}}},
          {"spec",
           {{"jobName", "vision"},
            {"replicas", replicas},
            {"template",
             {{"metadata",
               {{"labels", {{"sluice.dev/job", "vision"}, {"sluice.dev/component", "worker"}}},
                {"annotations", {{"prometheus.io/scrape", "true"}}}}},
              {"spec", {{"containers", {{{"name", "sluice-worker"}}}}}}}}}}};
}

inline kube::ObjectPointer shared(nlohmann::json object) {
  return std::make_shared<const nlohmann::json>(std::move(object));
}

inline nlohmann::json condition(const std::string& type, const std::string& status,
                                const std::string& since = "2026-01-01T00:00:00Z") {
  return {{"type", type}, {"status", status}, {"lastTransitionTime", since}, {"reason", "R"}, {"message", ""}};
}

}  // namespace sluice::control::testing
