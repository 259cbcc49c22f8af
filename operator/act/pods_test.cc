// The pods that the operator makes from a trainer's template.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "operator/act/pod_parts.h"
#include "operator/act/trainer_pod.h"
#include "operator/act/worker_pod.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/fields.h"
#include "operator/api/names.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::field;
using api::text_field;
using control::testing::named;
using control::testing::test_config;
using control::testing::training_job;
using control::testing::variable;
using nlohmann::json;

json trainer_pod(const json& job, FeederRole role = FeederRole::kMakesBatches) {
  auto pod = trainer_pod_template(api::TrainingJob(job), role, test_config());
  REQUIRE(pod.ok());
  return *pod;
}

json& trainer_container(json& job) { return job["spec"]["trainer"]["template"]["spec"]["containers"][0]; }

// Golden files: written by this test itself with SLUICE_UPDATE_GOLDEN=1, then read by a person in the diff.
void check_golden(const json& actual, const std::string& file) {
  const std::string path = "operator/act/testdata/" + file;
  if (std::getenv("SLUICE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << actual.dump(2) << "\n";
  std::ifstream stream(path);
  const json want = json::parse(stream, nullptr, false);
  INFO(path << " differs: " << json::diff(want, actual).dump(2));
  CHECK(want == actual);
}

TEST_CASE("a trainer's pod gets the bundle, the feeder and the way to it") {
  check_golden(trainer_pod(training_job()), "trainer_pod.json");
}

TEST_CASE("a worker's pod runs in the trainer's image, without its GPU and its token") {
  const json job = training_job();
  const json pod = worker_pod_template(api::TrainingJob(job), test_config());
  check_golden(pod, "worker_pod.json");
  CHECK(pod.dump().find("nvidia.com/gpu\":") == std::string::npos);
}

TEST_CASE("workers have the configured priority class, unless the job names one") {
  auto config = test_config();
  config.worker_priority_class = "sluice-workers";
  json job = training_job();
  CHECK(worker_pod_template(api::TrainingJob(job), config)["spec"]["priorityClassName"] == "sluice-workers");
  job["spec"]["dataWorkers"]["template"]["spec"]["priorityClassName"] = "low";
  CHECK(worker_pod_template(api::TrainingJob(job), config)["spec"]["priorityClassName"] == "low");
}

TEST_CASE("pull secrets of the Sluice image stand beside the user's, once each") {
  auto config = test_config();
  config.image_pull_secrets = {"mirror", "pull"};  // the job names "pull", too
  const json want = json::parse(R"([{"name": "pull"}, {"name": "mirror"}])");
  const json job = training_job();
  json trainer = *trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, config);
  CHECK(trainer["spec"]["imagePullSecrets"] == want);
  CHECK(worker_pod_template(api::TrainingJob(job), config)["spec"]["imagePullSecrets"] == want);

  json without = training_job();
  without["spec"]["trainer"]["template"]["spec"].erase("imagePullSecrets");
  trainer = *trainer_pod_template(api::TrainingJob(without), FeederRole::kMakesBatches, config);
  CHECK(trainer["spec"]["imagePullSecrets"] == json::parse(R"([{"name": "mirror"}, {"name": "pull"}])"));
  trainer = *trainer_pod_template(api::TrainingJob(without), FeederRole::kNone, config);  // none of our images
  CHECK_FALSE(trainer["spec"].contains("imagePullSecrets"));
}

TEST_CASE("a quota or a LimitRange finds requests and limits on the bundle's container") {
  auto config = test_config();
  const json job = training_job();
  const auto resources = [&] {
    const json worker = worker_pod_template(api::TrainingJob(job), config);
    const json trainer = *trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, config);
    const json of_worker = named(worker["spec"]["initContainers"], "sluice-bundle")["resources"];
    CHECK(of_worker == named(trainer["spec"]["initContainers"], "sluice-bundle")["resources"]);
    return of_worker;
  };
  CHECK(resources() == json::parse(R"({"requests": {"cpu": "10m", "memory": "32Mi"},
                                       "limits": {"cpu": "250m", "memory": "128Mi"}})"));
  config.bundle = {"100m", "64Mi", "200m", "96Mi"};
  CHECK(resources() == json::parse(R"({"requests": {"cpu": "100m", "memory": "64Mi"},
                                       "limits": {"cpu": "200m", "memory": "96Mi"}})"));
}

TEST_CASE("limits of the trainer's pod as a whole take the place of the bundle's own") {
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["resources"] = {{"limits", {{"cpu", "3"}}}};
  const json trainer = *trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, test_config());
  CHECK(named(trainer["spec"]["initContainers"], "sluice-bundle")["resources"]["limits"] ==
        json::parse(R"({"memory": "128Mi"})"));
}

TEST_CASE("workers without stated resources begin with the first size of their bounds") {
  json job = training_job();
  job["spec"]["dataWorkers"].erase("resources");
  const auto resources = [&] {
    return worker_pod_template(api::TrainingJob(job), test_config())["spec"]["containers"][0]["resources"];
  };
  CHECK(resources() == json::parse(R"({"requests": {"cpu": "1000m", "memory": "1024Mi"},
                                       "limits": {"cpu": "1000m", "memory": "2048Mi"}})"));
  job["spec"]["dataWorkers"]["autoResources"] = {{"cpu", "500m"}, {"firstMemory", "64Mi"}, {"minMemory", "32Mi"}};
  CHECK(resources()["requests"] == json::parse(R"({"cpu": "500m", "memory": "64Mi"})"));
}

TEST_CASE("a trainer with a feeder stays off nodes of another platform, where the feeder does not start") {
  json job = training_job();
  json& spec = job["spec"]["trainer"]["template"]["spec"];
  spec["nodeSelector"] = {{"pool", "gpu"}};
  const auto selector = [&](FeederRole role) {
    return (*trainer_pod_template(api::TrainingJob(job), role, test_config()))["spec"]["nodeSelector"];
  };
  CHECK(selector(FeederRole::kMakesBatches) ==
        json{{"pool", "gpu"}, {"kubernetes.io/arch", "amd64"}, {"kubernetes.io/os", "linux"}});
  CHECK(selector(FeederRole::kNone) == json{{"pool", "gpu"}});
}

TEST_CASE("mode Off leaves the user's template as it is, but for labels") {
  const json pod = trainer_pod(training_job(), FeederRole::kNone);
  json want = training_job()["spec"]["trainer"]["template"]["spec"];
  want["restartPolicy"] = "Never";
  CHECK(pod["spec"] == want);
  CHECK(text_field(pod, "/metadata/labels/sluice.dev~1component") == "trainer");
  CHECK_FALSE(pod["metadata"].contains("annotations"));
}

TEST_CASE("the user's init containers come before ours, so that what they prepare is there") {
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["initContainers"] = {{{"name", "download"}}};
  const json pod = trainer_pod(job);
  REQUIRE(pod["spec"]["initContainers"].size() == 3);
  CHECK(text_field(pod["spec"]["initContainers"][0], "/name") == "download");
  CHECK(text_field(pod["spec"]["initContainers"][1], "/name") == "sluice-bundle");
  CHECK(text_field(pod["spec"]["initContainers"][2], "/name") == "sluice-feeder");
  CHECK_FALSE(worker_pod_template(api::TrainingJob(job), test_config()).dump().find("download") != std::string::npos);
}

TEST_CASE("the container that trains is the one named, and only it is connected") {
  json job = training_job();
  json& containers = job["spec"]["trainer"]["template"]["spec"]["containers"];
  const json logger = {{"name", "logger"}, {"image", "registry.example/logger:1"}};
  containers.insert(containers.begin(), logger);
  job["spec"]["trainer"]["container"] = "trainer";
  const json pod = trainer_pod(job);
  CHECK(variable(pod["spec"]["containers"][0], "SLUICE_FEEDER_SOCKET") == "<unset>");
  CHECK(variable(pod["spec"]["containers"][1], "SLUICE_FEEDER_SOCKET") == "/run/sluice/feeder.sock");
  CHECK(text_field(pod["spec"]["initContainers"][1], "/image") == "registry.example/trainer:7");
}

TEST_CASE("the client comes first on the Python path, and the user's path stays") {
  json job = training_job();
  json& env = trainer_container(job)["env"];
  SECTION("a plain value") {
    env.push_back({{"name", "PYTHONPATH"}, {"value", "/app"}});
    const json container = trainer_pod(job)["spec"]["containers"][0];
    CHECK(variable(container, "PYTHONPATH") == "/opt/sluice/python:$(SLUICE_USER_PYTHONPATH)");
    CHECK(variable(container, "SLUICE_USER_PYTHONPATH") == "/app");
  }
  SECTION("a value from elsewhere") {
    env.push_back({{"name", "PYTHONPATH"}, {"valueFrom", {{"configMapKeyRef", {{"name", "c"}, {"key", "path"}}}}}});
    const json container = trainer_pod(job)["spec"]["containers"][0];
    CHECK(variable(container, "PYTHONPATH") == "/opt/sluice/python:$(SLUICE_USER_PYTHONPATH)");
    CHECK(text_field(named(container["env"], "SLUICE_USER_PYTHONPATH"), "/valueFrom/configMapKeyRef/name") == "c");
  }
  SECTION("none") { CHECK(variable(trainer_pod(job)["spec"]["containers"][0], "PYTHONPATH") == "/opt/sluice/python"); }
}

TEST_CASE("workers stay off the nodes that the trainer's GPUs keep it on") {
  json job = training_job();
  json& spec = job["spec"]["trainer"]["template"]["spec"];
  spec["nodeSelector"] = {{"cloud.google.com/gke-accelerator", "nvidia-l4"}, {"topology.kubernetes.io/zone", "a"}};
  spec["tolerations"] = json::parse(R"([{"key": "nvidia.com/gpu", "operator": "Exists"},
                                        {"key": "team", "value": "vision"}, {"operator": "Exists"}])");
  const json pod = worker_pod_template(api::TrainingJob(job), test_config())["spec"];
  CHECK(pod["nodeSelector"] == json::parse(R"({"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
                                              "topology.kubernetes.io/zone": "a"})"));
  CHECK(pod["tolerations"] == json::parse(R"([{"key": "team", "value": "vision"}, {"operator": "Exists"}])"));
}

TEST_CASE("workers leave a lost node after half a minute, unless the trainer says how long it stays there") {
  struct Case {
    const char* trainers;
    const char* want;
  };
  const Case test = GENERATE(
      Case{"[]", R"([["node.kubernetes.io/not-ready", 30], ["node.kubernetes.io/unreachable", 30]])"},
      Case{R"([{"key": "team", "operator": "Exists"}])",
           R"([["team", null], ["node.kubernetes.io/not-ready", 30], ["node.kubernetes.io/unreachable", 30]])"},
      Case{R"([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 600}])",
           R"([["node.kubernetes.io/unreachable", 600], ["node.kubernetes.io/not-ready", 30]])"},
      Case{R"([{"operator": "Exists"}])", R"([[null, null]])"});
  INFO(test.trainers);
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["tolerations"] = json::parse(test.trainers);
  const json pod = worker_pod_template(api::TrainingJob(job), test_config())["spec"];
  json said = json::array();
  for (const json& each : pod["tolerations"])
    said.push_back({each.value("key", json()), each.value("tolerationSeconds", json())});
  CHECK(said == json::parse(test.want));
}

TEST_CASE("the nodes that count as room for a job are those that its workers' pods may use") {
  struct Case {
    const char* labels;
    const char* taints;
    bool want;
    bool want_with_template;
  };
  const Case test = GENERATE(
      Case{R"({"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"})", "[]", true, false},
      Case{R"({"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux"})", "[]", false, false},
      Case{R"({"kubernetes.io/arch": "amd64", "kubernetes.io/os": "windows", "pool": "cpu"})", "[]", false, false},
      Case{R"({"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "pool": "cpu"})", "[]", true, true},
      Case{R"({"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"})",
           R"([{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])", false, false},
      Case{R"({"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "pool": "cpu"})",
           R"([{"key": "batch", "effect": "NoSchedule"}])", false, true});
  INFO(test.labels << " " << test.taints);
  const json node = {{"metadata", {{"name", "n"}, {"labels", json::parse(test.labels)}}},
                     {"spec", {{"taints", json::parse(test.taints)}}}};
  json job = training_job();
  const auto admits = [&] {
    const json pool = {{"spec", {{"template", worker_pod_template(api::TrainingJob(job), test_config())}}}};
    return api::DataWorkerPool(pool).node_rules().admit(api::Node(node));
  };
  CHECK(admits() == test.want);
  job["spec"]["dataWorkers"]["template"]["spec"] =
      json::parse(R"({"nodeSelector": {"pool": "cpu"}, "tolerations": [{"key": "batch", "operator": "Exists"}]})");
  CHECK(admits() == test.want_with_template);
}

TEST_CASE("a trainer on the node's network has ports of its job's own, and still finds the workers' Service") {
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["hostNetwork"] = true;
  json other = job;
  other["metadata"]["name"] = "speech";
  const auto port = [](const json& pod) { return text_field(pod, "/metadata/annotations/prometheus.io~1port"); };
  const json pod = trainer_pod(job);
  const json feeder = named(pod["spec"]["initContainers"], "sluice-feeder");
  const int metrics = std::stoi(port(pod));
  CHECK(metrics >= 20000);
  CHECK(metrics < 28000);
  CHECK(port(trainer_pod(other)) != port(pod));
  CHECK(port(trainer_pod(job)) == port(pod));
  CHECK(feeder["ports"][0]["containerPort"] == metrics);
  CHECK(feeder["ports"][1]["containerPort"] == metrics + 1);
  CHECK(feeder["args"].dump().find("[::]:" + std::to_string(metrics + 1)) != std::string::npos);
  CHECK(pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet");
  const json worker = worker_pod_template(api::TrainingJob(job), test_config());
  CHECK(port(worker) == "9464");
  CHECK_FALSE(worker["spec"].contains("hostNetwork"));
}

TEST_CASE("a feeder on the node's network takes no port that another pod holds there") {
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["hostNetwork"] = true;
  const json spec = {{"hostNetwork", true}};
  const auto first_port = [&](const std::set<std::int64_t>& held) {
    const ExecutorPorts ports = executor_ports(spec, api::TrainingJob(job), held);
    CHECK(ports.probes == ports.metrics + 1);
    return ports.metrics;
  };
  const int own = first_port({});
  CHECK(first_port({own - 1, own + 2}) == own);
  CHECK(first_port({own}) == own + 2);
  CHECK(first_port({own + 1}) == own + 2);
  CHECK(first_port({own, own + 3}) == own + 4);

  std::set<std::int64_t> all_but_one_pair;
  for (int port = 20000; port < 28000; ++port) all_but_one_pair.insert(port);
  for (const int free : {20000, 27998}) {
    std::set<std::int64_t> held = all_but_one_pair;
    held.erase(free);
    held.erase(free + 1);
    CHECK(first_port(held) == free);
  }
  CHECK(executor_ports(json::object(), api::TrainingJob(job), {9464}).metrics == 9464);  // an address of its own
}

TEST_CASE("the job's template is merged over what a worker has from the trainer") {
  json job = training_job();
  job["spec"]["dataWorkers"]["template"] = json::parse(R"({
      "metadata": {"labels": {"team": "vision"}, "annotations": {"prometheus.io/scrape": "false"}},
      "spec": {"nodeSelector": {"kubernetes.io/arch": null, "kubernetes.io/os": null, "pool": "cpu"}, "serviceAccountName": "trainer",
               "priorityClassName": "low", "volumes": [{"name": "data", "emptyDir": {}}],
               "initContainers": [{"name": "sluice-bundle", "resources": {"requests": {"cpu": "20m"}}},
                                  {"name": "fetch", "image": "fetch"}],
               "containers": [{"name": "sluice-worker", "env": [{"name": "EPOCHS", "value": "4"}]}]}})");
  const json pod = worker_pod_template(api::TrainingJob(job), test_config());
  const json& spec = pod["spec"];
  CHECK(text_field(pod, "/metadata/labels/team") == "vision");
  CHECK(text_field(pod, "/metadata/labels/sluice.dev~1job") == "vision");
  CHECK(text_field(pod, "/metadata/annotations/prometheus.io~1scrape") == "false");
  CHECK(spec["nodeSelector"] == json{{"pool", "cpu"}});
  CHECK(spec["serviceAccountName"] == "trainer");
  CHECK(spec["automountServiceAccountToken"] == false);
  CHECK(spec["priorityClassName"] == "low");
  CHECK(named(spec["volumes"], "data") == json{{"name", "data"}, {"emptyDir", json::object()}});
  CHECK(text_field(spec["initContainers"][0], "/resources/requests/cpu") == "20m");
  CHECK(text_field(spec["initContainers"][0], "/resources/requests/memory") == "32Mi");
  CHECK(text_field(spec["initContainers"][1], "/name") == "fetch");
  CHECK(variable(spec["containers"][0], "EPOCHS") == "4");
  CHECK(variable(spec["containers"][0], "SLUICE_JOB") == "vision");
}

// What Pod Security "restricted" demands of a container (Kubernetes documentation, Pod Security Standards).
void check_restricted(const json& pod_spec, const json& container) {
  INFO(container.dump());
  const auto setting = [&](const std::string& name) {
    const json& own = field(container, "/securityContext/" + name);
    return own.is_null() ? field(pod_spec, "/securityContext/" + name) : own;
  };
  CHECK(field(container, "/securityContext/allowPrivilegeEscalation") == false);
  CHECK(field(container, "/securityContext/capabilities/drop") == json::array({"ALL"}));
  CHECK(text_field(setting("seccompProfile"), "/type") == "RuntimeDefault");
  CHECK(setting("runAsNonRoot") == true);
  CHECK(setting("runAsUser") != 0);
}

TEST_CASE("where the user's pod passes Pod Security restricted, so does what we add") {
  json job = training_job();
  const json restricted = {{"runAsNonRoot", true}, {"runAsUser", 1000}, {"allowPrivilegeEscalation", false}};
  const bool at_pod = GENERATE(true, false);
  if (at_pod)
    job["spec"]["trainer"]["template"]["spec"]["securityContext"] = {{"runAsNonRoot", true}, {"runAsUser", 1000}};
  else
    trainer_container(job)["securityContext"] = restricted;
  const json trainer = trainer_pod(job)["spec"];
  for (const json& container : trainer["initContainers"]) check_restricted(trainer, container);
  const json worker = worker_pod_template(api::TrainingJob(job), test_config())["spec"];
  for (const json& container : worker["initContainers"]) check_restricted(worker, container);
  for (const json& container : worker["containers"]) check_restricted(worker, container);
  CHECK(text_field(worker, "/securityContext/seccompProfile/type") == "RuntimeDefault");
}

TEST_CASE("a trainer that runs as root keeps its user, so that its files stay readable, and loses its privileges") {
  json job = training_job();
  trainer_container(job)["securityContext"] = {
      {"privileged", true}, {"runAsUser", 0}, {"capabilities", {{"add", {"SYS_ADMIN"}}}}};
  const json pod = trainer_pod(job)["spec"];
  const json feeder = named(pod["initContainers"], "sluice-feeder");
  CHECK(field(feeder, "/securityContext/runAsUser") == 0);
  CHECK(field(feeder, "/securityContext/privileged").is_null());
  CHECK(field(feeder, "/securityContext/capabilities") == json{{"drop", {"ALL"}}});
  CHECK(field(named(pod["initContainers"], "sluice-bundle"), "/securityContext/runAsUser") == 65532);
}

TEST_CASE("the feeder knows where remote workers are or will be, whatever it does at first") {
  const FeederRole role = GENERATE(FeederRole::kMakesBatches, FeederRole::kBridges);
  const json feeder = named(trainer_pod(training_job(), role)["spec"]["initContainers"], "sluice-feeder");
  const std::string arguments = feeder["args"].dump();
  CHECK(arguments.find("vision-workers.default.svc:7471") != std::string::npos);
  CHECK((arguments.find("--threads") != std::string::npos) == (role == FeederRole::kBridges));
}

TEST_CASE("an arena that is no quantity is refused by name") {
  json job = training_job();
  job["spec"]["feeder"]["arena"] = "much";
  const auto pod = trainer_pod_template(api::TrainingJob(job), FeederRole::kMakesBatches, test_config());
  REQUIRE_FALSE(pod.ok());
  CHECK(pod.error().code() == ErrorCode::kInvalidArgument);
  CHECK(pod.error().message().find("spec.feeder.arena") != std::string::npos);
}

}  // namespace
}  // namespace sluice::act
