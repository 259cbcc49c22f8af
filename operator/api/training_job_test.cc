#include "operator/api/training_job.h"

#include <nlohmann/json.hpp>

#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using control::testing::training_job;
using nlohmann::json;

TEST_CASE("a job whose fields cannot be read is refused by name") {
  json job = training_job();
  SECTION("mode") { job["spec"]["mode"] = "Sometimes"; }
  SECTION("placement") { job["spec"]["dataWorkers"]["placement"] = "Moon"; }
  SECTION("no CPU request") { job["spec"]["dataWorkers"]["resources"] = json::object(); }
  const auto view = view_training_job(job);
  REQUIRE_FALSE(view.ok());
  CHECK_THAT(view.error().message(), Catch::Contains("default/vision spec."));
}

TEST_CASE("a job whose data no worker can have makes its batches locally") {
  json job = training_job();
  job["spec"]["dataWorkers"].update({{"min", 2}, {"placement", "Remote"}});
  SECTION("by the spec") {
    job["spec"]["trainer"]["template"]["spec"]["initContainers"] =
        json::parse(R"([{"name": "fetch", "volumeMounts": [{"name": "scratch", "mountPath": "/d"}]}])");
  }
  SECTION("by the status") {
    job["status"]["conditions"] = json::parse(
        R"([{"type": "WorkersBlocked", "status": "True", "reason": "DataOnlyInTrainer", "message": "a claim"}])");
  }
  const auto view = view_training_job(job);
  REQUIRE(view.ok());
  CHECK(view->placement == Placement::kLocal);
  CHECK(view->min_workers == 0);
  CHECK_FALSE(view->may_have_workers());
}

TEST_CASE("a trainer's accelerators are those of its limits, else those that the status knows of its claims") {
  json job = training_job();
  json& pod = job["spec"]["trainer"]["template"]["spec"];
  pod["containers"][0]["resources"] = json::parse(R"({"claims": [{"name": "gpus"}]})");
  pod["resourceClaims"] = json::parse(R"([{"name": "gpus", "resourceClaimTemplateName": "eight"}])");
  std::int64_t want = 1;
  SECTION("a status that does not know yet") { job["status"]["conditions"] = json::array(); }
  SECTION("known") {
    job["status"]["claimedAccelerators"] = 8;
    want = 8;
  }
  SECTION("limits count first") {
    job["status"]["claimedAccelerators"] = 8;
    pod["containers"][0]["resources"]["limits"] = {{"nvidia.com/gpu", 2}};
    want = 2;
  }
  SECTION("a spec without claims") {
    job["status"]["claimedAccelerators"] = 8;
    pod["containers"][0]["resources"] = json::object();
    want = 0;
  }
  SECTION("no number") { job["status"]["claimedAccelerators"] = "8"; }
  const auto view = view_training_job(job);
  REQUIRE(view.ok());
  CHECK(view->trainer_gpus == want);
}

TEST_CASE("workers that are blocked for another reason, or were, may come") {
  struct Case {
    const char* status;
    const char* reason;
  };
  const Case test = GENERATE(Case{"True", "ImagePullBackOff"}, Case{"False", "DataOnlyInTrainer"});
  json job = training_job();
  job["status"]["conditions"] =
      json::array({{{"type", "WorkersBlocked"}, {"status", test.status}, {"reason", test.reason}}});
  CHECK(view_training_job(job)->may_have_workers());
}

TEST_CASE("where the size of the workers is left to Sluice, the view has its bounds and the first size") {
  json job = training_job();
  CHECK_FALSE(view_training_job(job).value().auto_resources.has_value());
  job["spec"]["dataWorkers"].erase("resources");
  auto view = view_training_job(job).value();
  REQUIRE(view.auto_resources.has_value());
  CHECK(view.worker == ContainerResources{1000, std::int64_t{1} << 30, 1000, std::int64_t{2} << 30});
  job["spec"]["dataWorkers"]["autoResources"] = {{"cpu", "250m"}, {"firstMemory", "512Mi"}, {"maxMemory", "768Mi"}};
  view = view_training_job(job).value();
  CHECK(view.worker == ContainerResources{250, std::int64_t{512} << 20, 250, std::int64_t{768} << 20});
}

TEST_CASE("workers that ask for accelerators are refused: they see none") {
  json job = control::testing::training_job();
  json& resources = job["spec"]["dataWorkers"]["resources"];
  resources["limits"] = {{"example.com/fuse", 1}};
  CHECK(view_training_job(job).ok());
  resources["limits"] = {{"nvidia.com/gpu", 1}};
  const auto view = view_training_job(job);
  REQUIRE_FALSE(view.ok());
  CHECK_THAT(view.error().message(),
             Catch::Contains("spec.dataWorkers.resources.limits") && Catch::Contains("take it out"));
}

TEST_CASE("jobs are alike that train the same with the same workers, whatever their name and their limits") {
  const auto likeness = [](const json& job) { return view_training_job(job).value().likeness; };
  const json job = control::testing::training_job();
  json other = job;
  other["metadata"]["name"] = "again";
  other["metadata"]["uid"] = "uid-again";
  other["spec"]["dataWorkers"]["max"] = 3;
  other["spec"]["weight"] = 7;
  CHECK(likeness(other) == likeness(job));
  for (const auto& [path, value] : std::initializer_list<std::pair<const char*, json>>{
           {"/metadata/namespace", "elsewhere"},
           {"/metadata/labels", {{"sluice.dev/like", "small"}}},
           {"/spec/trainer/replicas", 2},
           {"/spec/trainer/template/spec/containers/0/image", "other:1"},
           {"/spec/trainer/template/spec/containers/0/command", {"python", "other.py"}},
           {"/spec/trainer/template/spec/containers/0/args", {"--fast"}},
           {"/spec/dataWorkers/resources/requests/cpu", "2"},
           {"/spec/dataWorkers/template", {{"spec", {{"nodeSelector", {{"a", "b"}}}}}}}}) {
    INFO(path);
    json changed = job;
    changed[json::json_pointer(path)] = value;
    CHECK(likeness(changed) != likeness(job));
  }
}

TEST_CASE("a job with other settings of Sluice is like it in the first part, and one with other variables in all") {
  const auto likeness = [](const json& variables) {
    json job = control::testing::training_job();
    job["spec"]["trainer"]["template"]["spec"]["containers"][0]["env"] = variables;
    return view_training_job(job).value().likeness;
  };
  const auto kind = [](const std::string& likeness) { return likeness.substr(0, likeness.find('.')); };
  const std::string native = likeness(json::array());
  const std::string python = likeness(json::array({{{"name", "SLUICE_LOWERING"}, {"value", "off"}}}));
  CHECK(python != native);
  CHECK(kind(python) == kind(native));
  CHECK(likeness(json::array({{{"name", "RUN_ID"}, {"value", "17"}}})) == native);
}

}  // namespace
}  // namespace sluice::api
