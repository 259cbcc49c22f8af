// Pod templates as other people have them: what becomes of them in the trainer's pod and in the workers'.
#include <nlohmann/json.hpp>

#include "operator/act/trainer_pod.h"
#include "operator/act/worker_pod.h"
#include "operator/api/fields.h"
#include "operator/api/trainer_data.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::field;
using api::list_field;
using api::text_field;
using control::testing::test_config;
using control::testing::training_job;
using nlohmann::json;

// The job with these members of its trainer's pod spec and of the training container.
json job_with(const char* pod_spec, const char* container = "{}") {
  json job = training_job();
  json& spec = job["spec"]["trainer"]["template"]["spec"];
  spec.update(json::parse(pod_spec));
  spec["containers"][0].update(json::parse(container));
  REQUIRE(api::view_training_job(job).ok());
  return job;
}

json trainer_of(const json& job) {
  return *trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, test_config());
}
json worker_of(const json& job) { return worker_pod_template(api::TrainingJob(job), test_config()); }
json feeder_of(const json& job) { return trainer_of(job)["spec"]["initContainers"].back(); }

json entry(const json& list, const char* member, const std::string& value) {
  for (const json& each : list)
    if (text_field(each, std::string("/") + member) == value) return each;
  return nullptr;
}
json mount_at(const json& container, const std::string& path) {
  return entry(container["volumeMounts"], "mountPath", path);
}

TEST_CASE("shared memory and what lies above our directories stay writable, all else is read-only") {
  struct Row {
    const char* path;
    bool want_read_only;
  };
  const Row row = GENERATE(Row{"/dev/shm", false}, Row{"/run", false}, Row{"/var/run/", false}, Row{"/opt", false},
                           Row{"/etc/sluice", false}, Row{"/opt/conda", true}, Row{"/runs", true}, Row{"/dev", true});
  json job = job_with(R"({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]})");
  job["spec"]["trainer"]["template"]["spec"]["containers"][0]["volumeMounts"] = {
      {{"name", "v"}, {"mountPath", row.path}}};
  INFO(row.path);
  for (const json& container : {feeder_of(job), worker_of(job)["spec"]["containers"][0]})
    CHECK(mount_at(container, row.path).contains("readOnly") == row.want_read_only);
}

TEST_CASE("the feeder has the trainer's /tmp where an init container has put files there") {
  const bool is_filled = GENERATE(true, false);
  json job = job_with(R"({"volumes": [{"name": "v", "emptyDir": {}}]})",
                      R"({"volumeMounts": [{"name": "v", "mountPath": "/tmp/"}]})");
  if (is_filled)
    job["spec"]["trainer"]["template"]["spec"]["initContainers"] =
        json::parse(R"([{"name": "fetch", "volumeMounts": [{"name": "v", "mountPath": "/out"}]}])");
  const json feeder = feeder_of(job);
  CHECK(mount_at(feeder, "/tmp").is_null() == is_filled);
  CHECK(mount_at(feeder, "/tmp/") == (is_filled ? json{{"name", "v"}, {"mountPath", "/tmp/"}} : json()));
}

TEST_CASE("variables of the trainer hold in the executors, wherever they come from") {
  struct Row {
    const char* situation;
    const char* container;
    const char* want_python_path;
  };
  const Row row = GENERATE(Row{"none", "{}", "/opt/sluice/python"},
                           Row{"in a ConfigMap that is imported as a whole",
                               R"({"envFrom": [{"configMapRef": {"name": "c"}}]})", "/opt/sluice/python:$(PYTHONPATH)"},
                           Row{"set", R"({"env": [{"name": "PYTHONPATH", "value": "/app"}]})",
                               "/opt/sluice/python:$(SLUICE_USER_PYTHONPATH)"},
                           Row{"set twice, where the last one counts",
                               R"({"env": [{"name": "PYTHONPATH", "value": "/a"}, {"name": "B", "value": "b"},
                      {"name": "PYTHONPATH", "value": "/app"}]})",
                               "/opt/sluice/python:$(SLUICE_USER_PYTHONPATH)"});
  INFO(row.situation);
  const json job = job_with("{}", row.container);
  const json trainer = trainer_of(job)["spec"]["containers"][0];
  for (const json& container : {trainer, feeder_of(job), worker_of(job)["spec"]["containers"][0]}) {
    std::string python_path, users;
    for (const json& variable : container["env"]) {
      if (variable["name"] == "PYTHONPATH") python_path = variable["value"];
      if (variable["name"] == "SLUICE_USER_PYTHONPATH" && python_path.empty()) users = variable["value"];
    }
    CHECK(python_path == row.want_python_path);
    if (python_path.ends_with("USER_PYTHONPATH)")) CHECK(users == "/app");
  }
}

TEST_CASE("a library that the trainer preloads is not loaded into our programs") {
  const json job = job_with("{}", R"({"env": [{"name": "LD_PRELOAD", "value": "/usr/lib/libtcmalloc.so"}]})");
  CHECK(text_field(entry(trainer_of(job)["spec"]["containers"][0]["env"], "name", "LD_PRELOAD"), "/value") ==
        "/usr/lib/libtcmalloc.so");
  for (const json& container : {feeder_of(job), worker_of(job)["spec"]["containers"][0]})
    CHECK(text_field(entry(container["env"], "name", "LD_PRELOAD"), "/value", "unset").empty());
}

TEST_CASE("the feeder keeps off ports that the user's containers declare") {
  struct Row {
    const char* pod;
    int want_metrics;
  };
  const Row row =
      GENERATE(Row{"{}", 9464}, Row{R"({"containers": [{"name": "t", "ports": [{"containerPort": 9464}]}]})", 9466},
               Row{R"({"containers": [{"name": "t"}, {"name": "u", "ports": [{"containerPort": 9465}]}]})", 9466},
               Row{R"({"initContainers": [{"name": "p", "restartPolicy": "Always", "ports": [{"containerPort": 9466}]}],
              "containers": [{"name": "t", "ports": [{"containerPort": 9464}]}]})",
                   9468},
               Row{R"({"containers": [{"name": "t", "ports": [{"containerPort": 8888}]}]})", 9464});
  INFO(row.pod);
  const json job = job_with(row.pod);
  const json feeder = feeder_of(job);
  CHECK(feeder["ports"][0]["containerPort"] == row.want_metrics);
  CHECK(feeder["ports"][1]["containerPort"] == row.want_metrics + 1);
  CHECK(text_field(trainer_of(job), "/metadata/annotations/prometheus.io~1port") == std::to_string(row.want_metrics));
  CHECK_THAT(feeder["args"].dump(), Catch::Contains("[::]:" + std::to_string(row.want_metrics) + "\""));
}

TEST_CASE("a pod on the node's network finds the workers, also where its template was exported from a cluster") {
  struct Row {
    const char* pod;
    const char* want;
  };
  const Row row = GENERATE(Row{R"({"hostNetwork": true})", "ClusterFirstWithHostNet"},
                           Row{R"({"hostNetwork": true, "dnsPolicy": "ClusterFirst"})", "ClusterFirstWithHostNet"},
                           Row{R"({"hostNetwork": true, "dnsPolicy": "Default"})", "Default"},
                           Row{R"({"dnsPolicy": "ClusterFirst"})", "ClusterFirst"}, Row{"{}", ""});
  CHECK(text_field(trainer_of(job_with(row.pod))["spec"], "/dnsPolicy") == row.want);
}

TEST_CASE("a template that was exported from a Job has lost the labels by which that Job finds its pods") {
  json job = job_with("{}");
  job["spec"]["trainer"]["template"]["metadata"]["labels"] = {{"batch.kubernetes.io/controller-uid", "u"},
                                                              {"batch.kubernetes.io/job-name", "old"},
                                                              {"controller-uid", "u"},
                                                              {"job-name", "old"},
                                                              {"team", "vision"}};
  const json labels = trainer_of(job)["metadata"]["labels"];
  for (const char* name :
       {"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"})
    CHECK_FALSE(labels.contains(name));
  CHECK(labels["team"] == "vision");
  CHECK(labels["sluice.dev/job"] == "vision");
}

TEST_CASE("a pod that says its resources as a whole asks for the feeder's, too") {
  struct Row {
    const char* situation;
    const char* resources;
    const char* want;        // of the trainer's pod
    const char* want_error;  // in place of that
  };
  // The trainer asks for 2 cores, the feeder for 250m and 256Mi.
  const Row row = GENERATE(
      Row{"just the trainer's", R"({"requests": {"cpu": "2"}})", R"({"requests": {"cpu": "2250m"}})", ""},
      Row{"room for both", R"({"requests": {"cpu": "4", "memory": "8Gi"}})",
          R"({"requests": {"cpu": "4", "memory": "8Gi"}})", ""},
      Row{"within the limit",
          R"({"requests": {"cpu": "2", "memory": "128Mi"}, "limits": {"cpu": "3", "memory": "8Gi"}})",
          R"({"requests": {"cpu": "2250m", "memory": "256Mi"}, "limits": {"cpu": "3", "memory": "8Gi"}})", ""},
      Row{"a limit alone", R"({"limits": {"cpu": "2500m"}})", R"({"limits": {"cpu": "2500m"}})", ""},
      Row{"no room within the limit", R"({"requests": {"cpu": "2"}, "limits": {"cpu": "2"}})", "",
          "spec.trainer.template.spec.resources.limits.cpu is 2000m, and the pod's containers with the feeder ask for "
          "2250m; raise it, or lower spec.feeder.resources.requests.cpu"},
      Row{"no memory within the limit", R"({"limits": {"memory": "64Mi"}})", "",
          "spec.trainer.template.spec.resources.limits.memory is 64Mi, and the pod's containers with the feeder ask "
          "for "
          "256Mi; raise it, or lower spec.feeder.resources.requests.memory"});
  CAPTURE(row.situation);
  json job = job_with("{}");
  json& spec = job["spec"]["trainer"]["template"]["spec"];
  spec["resources"] = json::parse(row.resources);
  const auto made = trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, test_config());
  CHECK((made.ok() ? "" : made.error().message()) == row.want_error);
  if (made.ok()) CHECK((*made)["spec"]["resources"] == json::parse(row.want));
  const auto plain = trainer_pod_template(api::TrainingJob(job), FeederRole::kNone, test_config());
  CHECK((*plain)["spec"]["resources"] == json::parse(row.resources));
}

TEST_CASE("a Job that would be too large for Kubernetes is refused in words") {
  json job = job_with("{}");
  json& variables = job["spec"]["trainer"]["template"]["spec"]["containers"][0]["env"];
  for (int number = 0; number < 1000; ++number)
    variables.push_back({{"name", "E" + std::to_string(number)}, {"value", std::string(1000, 'x')}});
  const auto made = trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, test_config());
  REQUIRE_FALSE(made.ok());
  CHECK_THAT(made.error().message(), Catch::Contains("spec.trainer.template") && Catch::Contains("ConfigMap"));
  CHECK(trainer_pod_template(api::TrainingJob(job), FeederRole::kNone, test_config()).ok());
}

TEST_CASE("a restart of the feeder is no failure of several trainer pods") {
  struct Row {
    int replicas;
    bool is_elastic;
    const char* said;
    const char* want;
  };
  const Row row = GENERATE(Row{2, false, "OnFailure", "Never"}, Row{2, true, "OnFailure", "OnFailure"},
                           Row{1, false, "OnFailure", "OnFailure"}, Row{2, false, "Never", "Never"});
  json job = job_with("{}");
  job["spec"]["trainer"]["replicas"] = row.replicas;
  job["spec"]["trainer"]["template"]["spec"]["restartPolicy"] = row.said;
  if (row.is_elastic) job["spec"]["trainer"]["elasticPolicy"] = {{"minReplicas", 1}};
  CHECK(trainer_of(job)["spec"]["restartPolicy"] == row.want);
}

TEST_CASE("resources of the trainer's container, told to it, are the worker's own in a worker") {
  const json job = job_with(
      R"({"volumes": [
            {"name": "info", "downwardAPI": {"items": [{"path": "cpu", "resourceFieldRef":
                {"containerName": "trainer", "resource": "limits.cpu"}}]}},
            {"name": "all", "projected": {"sources": [{"downwardAPI": {"items": [{"path": "m", "resourceFieldRef":
                {"containerName": "trainer", "resource": "limits.memory"}}]}}]}}]})",
      R"({"env": [{"name": "CPUS", "valueFrom": {"resourceFieldRef":
              {"containerName": "trainer", "resource": "limits.cpu"}}},
                  {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
          "volumeMounts": [{"name": "info", "mountPath": "/info"}, {"name": "all", "mountPath": "/all"}]})");
  CHECK_THAT(worker_of(job)["spec"].dump(), !Catch::Contains(R"("containerName":"trainer")"));
  CHECK_THAT(worker_of(job)["spec"]["volumes"].dump(), Catch::Contains(R"("containerName":"sluice-worker")"));
  CHECK_THAT(feeder_of(job).dump(), Catch::Contains(R"("containerName":"trainer")"));
}

TEST_CASE("a directory that each pod has for itself is not mounted in workers, and the job stays local and says so") {
  struct Row {
    const char* situation;
    const char* container;
    bool want_own;
  };
  const Row row = GENERATE(
      Row{"by the pod's name",
          R"j({"env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
               "volumeMounts": [{"name": "data", "mountPath": "/logs", "subPathExpr": "run/$(POD)"}]})j",
          true},
      Row{"by its number, which no worker has",
          R"j({"envFrom": [{"configMapRef": {"name": "c"}}],
               "volumeMounts": [{"name": "data", "mountPath": "/logs", "subPathExpr": "$(JOB_COMPLETION_INDEX)"}]})j",
          true},
      Row{"by a value that is the same in all",
          R"j({"env": [{"name": "SET", "value": "photos"}],
               "volumeMounts": [{"name": "data", "mountPath": "/logs", "subPathExpr": "$(SET)/a"}]})j",
          false},
      Row{"by a value of a ConfigMap",
          R"j({"envFrom": [{"configMapRef": {"name": "c"}}],
               "volumeMounts": [{"name": "data", "mountPath": "/logs", "subPathExpr": "$(SET)"}]})j",
          false},
      Row{"no expression", R"({"volumeMounts": [{"name": "data", "mountPath": "/logs", "subPath": "a"}]})", false});
  INFO(row.situation);
  json job = job_with("{}", row.container);
  CHECK(mount_at(worker_of(job)["spec"]["containers"][0], "/logs").is_null() == row.want_own);
  CHECK_FALSE(mount_at(feeder_of(job), "/logs").is_null());
  CHECK(api::data_only_in_trainer(api::TrainingJob(job)).empty() != row.want_own);
  const auto view = api::view_training_job(job);
  CHECK(view->may_have_workers() != row.want_own);
  job["spec"]["dataWorkers"]["template"]["spec"]["volumes"] = json::parse(R"([{"name": "data", "emptyDir": {}}])");
  CHECK(api::data_only_in_trainer(api::TrainingJob(job)).empty());
}

TEST_CASE("workers buy no disks, and give no files of the data set to a group") {
  const json job = job_with(
      R"({"securityContext": {"fsGroup": 2000, "sysctls": [{"name": "a", "value": "b"}]},
          "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}},
                      {"name": "data", "persistentVolumeClaim": {"claimName": "photos"}}]})");
  const json worker = worker_of(job)["spec"];
  CHECK(entry(worker["volumes"], "name", "scratch") == json{{"name", "scratch"}, {"emptyDir", json::object()}});
  CHECK(entry(worker["volumes"], "name", "data") ==
        json::parse(R"({"name": "data", "persistentVolumeClaim": {"claimName": "photos"}})"));
  CHECK(worker["securityContext"]["fsGroup"] == 2000);
  CHECK(worker["securityContext"]["fsGroupChangePolicy"] == "OnRootMismatch");
  CHECK_THAT(trainer_of(job)["spec"]["volumes"].dump(), Catch::Contains("volumeClaimTemplate"));
}

TEST_CASE("of the trainer's annotations workers have those that its volumes' drivers ask for, and stay out of meshes") {
  json job = job_with("{}");
  json& metadata = job["spec"]["trainer"]["template"]["metadata"];
  metadata["annotations"] = {{"gke-gcsfuse/volumes", "true"},
                             {"gke-gcsfuse/cpu-limit", "2"},
                             {"sidecar.istio.io/inject", "true"},
                             {"linkerd.io/inject", "disabled"},
                             {"vault.hashicorp.com/agent-inject", "true"},
                             {"traffic.sidecar.istio.io/excludeInboundPorts", "9464,9465"}};
  const json trainer = trainer_of(job)["metadata"]["annotations"];
  for (const auto& [name, value] : metadata["annotations"].items()) CHECK(trainer[name] == value);
  const json worker = worker_of(job)["metadata"]["annotations"];
  CHECK(worker["gke-gcsfuse/volumes"] == "true");
  CHECK(worker["gke-gcsfuse/cpu-limit"] == "2");
  CHECK_FALSE(worker.contains("vault.hashicorp.com/agent-inject"));
  CHECK_FALSE(worker.contains("sidecar.istio.io/inject"));
  CHECK(worker["linkerd.io/inject"] == "disabled");
  job["spec"]["dataWorkers"]["template"]["metadata"]["annotations"] = {{"sidecar.istio.io/inject", "false"}};
  CHECK(worker_of(job)["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false");
}

TEST_CASE("metrics of the trainer's own, said by annotations, do not hide the feeder's") {
  json job = job_with("{}");
  job["spec"]["trainer"]["template"]["metadata"]["annotations"] = {{"prometheus.io/scrape", "true"},
                                                                   {"prometheus.io/port", "8000"},
                                                                   {"prometheus.io/path", "/own"},
                                                                   {"prometheus.io/scheme", "https"}};
  CHECK(trainer_of(job)["metadata"]["annotations"] ==
        json{{"prometheus.io/scrape", "true"}, {"prometheus.io/port", "9464"}});
  job["spec"]["mode"] = "Off";
  CHECK(text_field(*trainer_pod_template(api::TrainingJob(job), FeederRole::kNone, test_config()),
                   "/metadata/annotations/prometheus.io~1path") == "/own");
}

TEST_CASE("what binds a trainer to its own node, network or processes does not bind a worker") {
  const json job = job_with(
      R"({"hostIPC": true, "hostPID": true, "shareProcessNamespace": true, "runtimeClassName": "nvidia",
          "priorityClassName": "gpu", "nodeName": "gpu-1", "hostname": "t", "setHostnameAsFQDN": true,
          "topologySpreadConstraints": [{"maxSkew": 1}], "affinity": {"podAffinity": {}},
          "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
          "schedulingGates": [{"name": "g"}], "activeDeadlineSeconds": 60})",
      R"({"resources": {"claims": [{"name": "gpu"}]}, "lifecycle": {"preStop": {}}, "livenessProbe": {},
          "workingDir": "/app", "stdin": true, "command": ["python"], "args": ["a.py"]})");
  const json worker = worker_of(job)["spec"];
  for (const char* name : {"hostIPC", "hostPID", "shareProcessNamespace", "runtimeClassName", "priorityClassName",
                           "nodeName", "hostname", "setHostnameAsFQDN", "topologySpreadConstraints", "affinity",
                           "resourceClaims", "schedulingGates", "activeDeadlineSeconds"}) {
    CHECK_FALSE(worker.contains(name));
    CHECK(trainer_of(job)["spec"].contains(name));
  }
  CHECK_FALSE(worker["containers"][0]["resources"].contains("claims"));
  CHECK_FALSE(feeder_of(job)["resources"].contains("claims"));
}

}  // namespace
}  // namespace sluice::act
