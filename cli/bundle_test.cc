#include "cli/bundle.h"

#include <map>
#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

// A cluster with one operator, and one job of one trainer and one worker.
struct Cluster {
  std::map<std::string, std::vector<json>> objects;  // by kind
  std::vector<std::string> asked;                    // kinds and selectors
  std::string refused;                               // a kind, "log", "metrics" or "plan"

  Cluster() {
    objects["TrainingJob"] = {json::parse(R"({"metadata": {"name": "vision", "namespace": "team", "uid": "j",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "password"}, "managedFields": ["password"]}})")};
    objects["Pod"] = {json::parse(R"({"metadata": {"name": "vision-0", "namespace": "team", "uid": "p"},
            "spec": {"initContainers": [{"name": "sluice-feeder", "ports": [{"name": "metrics", "containerPort": 9464}]}],
                     "containers": [{"name": "trainer", "env": [{"name": "TOKEN", "value": "password"},
                        {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}})"),
                      json::parse(R"({"metadata": {"name": "vision-worker-0", "namespace": "team", "uid": "w"},
            "spec": {"containers": [{"name": "sluice-worker"}]},
            "status": {"containerStatuses": [{"name": "sluice-worker", "restartCount": 2}]}})")};
    objects["ConfigMap"] = {
        json::parse(R"({"metadata": {"name": "sluice-operator", "namespace": "home"}, "data": {"config.yaml":
        "metrics:\n  connection: {\"headers\": {\"Authorization\": \"password\"}}\n  url: http://prometheus\n"}})")};
    objects["Event"] = {json::parse(R"({"metadata": {"name": "ours"}, "regarding": {"uid": "p"}})"),
                        json::parse(R"({"metadata": {"name": "a strangers"}, "regarding": {"uid": "x"}})")};
    objects["operator"] = {json::parse(R"({"metadata": {"name": "sluice-operator-a", "namespace": "home", "uid": "o"},
        "spec": {"containers": [{"name": "operator", "ports": [{"name": "metrics", "containerPort": 8080}]}]}})")};
  }

  BundleSource source() {
    return {
        .list = [this](const kube::Resource& resource, const std::string& name_space,
                       const std::string& selector) -> Result<std::vector<json>> {
          asked.push_back(std::string(resource.kind) + " in '" + name_space + "' with '" + selector + "'");
          if (resource.kind == refused) return Error(ErrorCode::kPermissionDenied, "you may not list these");
          const bool is_operator = resource == kube::kPods && name_space == "home";
          return objects[is_operator ? "operator" : std::string(resource.kind)];
        },
        .log = [this](const kube::ObjectKey& pod, const std::string& container, bool previous) -> Result<std::string> {
          if (refused == "log") return Error(ErrorCode::kPermissionDenied, "no logs");
          return (previous ? "before: " : "log of ") + pod.name + " " + container;
        },
        .metrics = [this](const kube::ObjectKey&, int port) -> Result<std::string> {
          if (refused == "metrics") return unavailable("no answer");
          return "port " + std::to_string(port);
        },
        .plan = [this]() -> Result<json> {
          if (refused == "plan") return unavailable("no operator leads");
          return json{{"jobs", json::array()}};
        }};
  }
};

std::map<std::string, std::string> files_of(const Bundle& bundle) {
  std::map<std::string, std::string> files;
  for (const ArchiveFile& file : bundle.files) files[file.path] = file.text;
  CHECK(files.size() == bundle.files.size());
  return files;
}

TEST_CASE("a bundle holds objects, their events, Sluice's logs and metrics, and the plan") {
  Cluster cluster;
  const Bundle bundle = gather_bundle(cluster.source(), {"team", "home"});
  const auto files = files_of(bundle);
  CHECK(bundle.problems.empty());
  CHECK(files.at("problems.txt").empty());
  CHECK(files.at("version.txt").starts_with("kubectl-sluice "));
  CHECK(files.at("pods/home/sluice-operator-a/operator.log") == "log of sluice-operator-a operator");
  CHECK(files.at("pods/home/sluice-operator-a/operator.metrics.txt") == "port 8080");
  CHECK(files.at("pods/team/vision-0/sluice-feeder.log") == "log of vision-0 sluice-feeder");
  CHECK(files.at("pods/team/vision-0/sluice-feeder.metrics.txt") == "port 9464");
  CHECK(files.at("pods/team/vision-worker-0/sluice-worker.previous.log") == "before: vision-worker-0 sluice-worker");
  CHECK_FALSE(files.contains("pods/team/vision-0/trainer.log"));
  CHECK_FALSE(files.contains("pods/team/vision-0/sluice-feeder.previous.log"));
  CHECK(json::parse(files.at("objects/trainingjobs.json"))[0]["metadata"]["name"] == "vision");
  const json events = json::parse(files.at("objects/events.json"));
  REQUIRE(events.size() == 1);
  CHECK(events[0]["metadata"]["name"] == "ours");
  for (const char* file : {"objects/dataworkerpools.json", "objects/jobs.json", "objects/services.json",
                           "operator/configmaps.json", "operator/leases.json", "operator/plan.json"})
    CHECK(json::parse(files.at(file)).is_structured());
}

TEST_CASE("Secrets are not asked for, and what people write into variables is left out") {
  Cluster cluster;
  const auto files = files_of(gather_bundle(cluster.source(), {"", "home"}));
  for (const std::string& asked : cluster.asked) CHECK(asked.find("Secret") == std::string::npos);
  for (const auto& [path, text] : files) {
    INFO(path);
    CHECK(text.find("password") == std::string::npos);
  }
  const json pod = json::parse(files.at("objects/pods.json"))[0];
  CHECK(pod["spec"]["containers"][0]["env"][0] == json{{"name", "TOKEN"}, {"value", "(left out)"}});
  CHECK(pod["spec"]["containers"][0]["env"][1]["valueFrom"]["secretKeyRef"]["name"] == "s");
}

TEST_CASE("what may not be read is named with the reason, and the rest is there") {
  Cluster cluster;
  const auto [refused, file, reason] = GENERATE(table<std::string, std::string, std::string>(
      {{"Event", "objects/events.json", "you may not list these"},
       {"ConfigMap", "operator/configmaps.json", "you may not list these"},
       {"TrainingJob", "objects/trainingjobs.json", "you may not list these"},
       {"log", "pods/team/vision-0/sluice-feeder.log", "no logs"},
       {"metrics", "pods/team/vision-0/sluice-feeder.metrics.txt", "no answer"},
       {"plan", "operator/plan.json", "no operator leads"}}));
  cluster.refused = refused;
  const Bundle bundle = gather_bundle(cluster.source(), {"team", "home"});
  const auto files = files_of(bundle);
  CHECK_FALSE(files.contains(file));
  CHECK_THAT(files.at("problems.txt"), Catch::Contains(file + ": " + reason + "\n"));
  CHECK_FALSE(bundle.problems.empty());
  CHECK(files.contains("objects/pods.json"));
  CHECK(files.contains("objects/dataworkerpools.json"));
}

TEST_CASE("of very many pods some have no logs in it, which it says") {
  Cluster cluster;
  const json pod = cluster.objects["Pod"][1];
  for (int i = 1; i < 300; ++i) {
    cluster.objects["Pod"].push_back(pod);
    cluster.objects["Pod"].back()["metadata"]["name"] = "vision-worker-" + std::to_string(i);
  }
  const Bundle bundle = gather_bundle(cluster.source(), {"team", "home"});
  REQUIRE(bundle.problems.size() == 1);
  CHECK(bundle.problems[0] == "pods: logs and metrics of 200 of 302; name a namespace with -n");
  const auto files = files_of(bundle);
  CHECK(files.contains("pods/home/sluice-operator-a/operator.log"));
  CHECK(std::count_if(files.begin(), files.end(),
                      [](const auto& file) { return file.first.ends_with("worker.log"); }) == 198);
}

}  // namespace
}  // namespace sluice::cli
