// The pods that the operator makes from a trainer's template.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "operator/act/pod_parts.h"
#include "operator/act/trainer_pod.h"
#include "operator/act/worker_pod.h"
#include "operator/names.h"
#include "operator/observe/fields.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using control::testing::test_config;
using control::testing::training_job;
using nlohmann::json;
using observe::field;
using observe::text_field;

json trainer_pod(const json& job, bool with_feeder = true) {
  auto pod = trainer_pod_template(job, with_feeder, test_config());
  REQUIRE(pod.ok());
  return *pod;
}

json& trainer_container(json& job) { return job["spec"]["trainer"]["template"]["spec"]["containers"][0]; }

json named(const json& list, const std::string& name) {
  for (const json& entry : list)
    if (text_field(entry, "/name") == name) return entry;
  return nullptr;
}

std::string variable(const json& container, const std::string& name) {
  return text_field(named(field(container, "/env"), name), "/value", "<unset>");
}

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
  const json pod = worker_pod_template(training_job(), test_config());
  check_golden(pod, "worker_pod.json");
  CHECK(pod.dump().find("nvidia.com/gpu\":") == std::string::npos);
}

TEST_CASE("mode Off leaves the user's template as it is, but for labels") {
  const json pod = trainer_pod(training_job(), false);
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
  CHECK_FALSE(worker_pod_template(job, test_config()).dump().find("download") != std::string::npos);
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
  const json worker = worker_pod_template(job, test_config())["spec"];
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

TEST_CASE("the feeder knows where remote workers are or will be, whatever the placement is at first") {
  struct Case {
    const char* placement;
    bool want_one_thread;
  };
  const Case test = GENERATE(Case{"Auto", false}, Case{"Remote", true}, Case{"Local", false});
  INFO(test.placement);
  json job = training_job();
  job["spec"]["dataWorkers"]["placement"] = test.placement;
  const std::string arguments = named(trainer_pod(job)["spec"]["initContainers"], "sluice-feeder")["args"].dump();
  CHECK(arguments.find("vision-workers.default.svc:7471") != std::string::npos);
  CHECK((arguments.find("--threads") != std::string::npos) == test.want_one_thread);
}

TEST_CASE("an arena that is no quantity is refused by name") {
  json job = training_job();
  job["spec"]["feeder"]["arena"] = "much";
  const auto pod = trainer_pod_template(job, true, test_config());
  REQUIRE_FALSE(pod.ok());
  CHECK(pod.error().code() == ErrorCode::kInvalidArgument);
  CHECK(pod.error().message().find("spec.feeder.arena") != std::string::npos);
}

}  // namespace
}  // namespace sluice::act
