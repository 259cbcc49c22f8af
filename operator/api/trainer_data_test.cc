#include "operator/api/trainer_data.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

// Of a job whose init container "fetch" and whose training container mount the volume "data".
json job_with_data(const char* source, const char* worker_spec) {
  json job = json::parse(R"({"metadata": {"name": "vision"}, "spec": {"trainer": {"template": {"spec": {
      "initContainers": [{"name": "other"}, {"name": "fetch", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}],
      "containers": [{"name": "trainer", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}}}}})");
  json volume = json::parse(source);
  volume["name"] = "data";
  job["spec"]["trainer"]["template"]["spec"]["volumes"] = json::array({volume});
  job["spec"]["dataWorkers"]["template"]["spec"] = json::parse(worker_spec);
  return job;
}

TEST_CASE("data that an init container brings into the trainer's pod is found, unless the workers have it, too") {
  struct Case {
    const char* source;
    const char* worker_spec;
    bool want;
  };
  const Case test = GENERATE(
      Case{R"({"emptyDir": {}})", "null", true}, Case{R"({"ephemeral": {"volumeClaimTemplate": {}}})", "{}", true},
      Case{R"({"persistentVolumeClaim": {"claimName": "c"}})", "null", false},
      Case{R"({"emptyDir": {}})", R"({"volumes": [{"name": "data", "nfs": {}}]})", false},
      Case{R"({"emptyDir": {}})", R"({"volumes": [{"name": "other"}]})", true},
      Case{R"({"emptyDir": {}})",
           R"({"initContainers": [{"name": "fetch", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]})", false},
      Case{R"({"emptyDir": {}})", R"({"initContainers": [{"name": "sluice-bundle"}]})", true});
  INFO(test.source << " " << test.worker_spec);
  const json job = job_with_data(test.source, test.worker_spec);
  const std::string found = data_only_in_trainer(TrainingJob(job));
  CHECK(found.empty() != test.want);
  if (test.want) CHECK_THAT(found, Catch::Contains("init container fetch") && Catch::Contains("volume data"));
}

TEST_CASE("a volume that only one of the two mounts is no data of the trainer's") {
  const char* container = GENERATE("initContainers", "containers");
  json job = job_with_data(R"({"emptyDir": {}})", "null");
  json& containers = job["spec"]["trainer"]["template"]["spec"][container];
  containers.back()["volumeMounts"] = json::array();
  CHECK(data_only_in_trainer(TrainingJob(job)).empty());
}

TEST_CASE("a variable from a file that is written in the trainer's pod is found, unless the workers have its volume") {
  struct Case {
    const char* variable;
    const char* worker_spec;
    bool want;
  };
  const char* of_file =
      R"({"name": "KEY", "valueFrom": {"fileKeyRef": {"volumeName": "data", "path": "e", "key": "K"}}})";
  const Case test = GENERATE_COPY(
      Case{of_file, "null", true}, Case{of_file, R"({"volumes": [{"name": "other", "emptyDir": {}}]})", true},
      Case{of_file, R"({"volumes": [{"name": "data", "emptyDir": {}}]})", false},
      Case{R"({"name": "KEY", "value": "v"})", "null", false},
      Case{R"({"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "data", "key": "K"}}})", "null", false});
  INFO(test.variable << " " << test.worker_spec);
  json job = job_with_data(R"({"emptyDir": {}})", test.worker_spec);
  json& trains = job["spec"]["trainer"]["template"]["spec"]["containers"][0];
  trains["volumeMounts"] = json::array();  // such a volume must not be mounted beside
  trains["env"] = json::array({json::parse(test.variable)});
  const std::string found = data_only_in_trainer(TrainingJob(job));
  CHECK(found.empty() != test.want);
  if (test.want) CHECK_THAT(found, Catch::Contains("variable KEY") && Catch::Contains("volume data"));
}

TEST_CASE("an object without what its schema demands has no such data") {
  for (const char* odd :
       {"{}", R"({"spec": {"trainer": {"template": {"spec": {"containers": [7], "volumes": [7]}}}}})"}) {
    const json job = json::parse(odd);
    CHECK(data_only_in_trainer(TrainingJob(job)).empty());
    CHECK(mounted_claims(TrainingJob(job)).empty());
  }
}

TEST_CASE("the claims that workers would mount are those of the training container that the template does not name") {
  const char* claim = R"({"persistentVolumeClaim": {"claimName": "c"}})";
  struct Case {
    const char* source;
    const char* worker_spec;
    std::size_t want;
  };
  const Case test =
      GENERATE_COPY(Case{claim, "null", 1}, Case{claim, R"({"volumes": [{"name": "other"}]})", 1},
                    Case{claim, R"({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]})", 0},
                    Case{R"({"persistentVolumeClaim": 7})", "null", 0}, Case{R"({"emptyDir": {}})", "null", 0});
  INFO(test.source << " " << test.worker_spec);
  const json job = job_with_data(test.source, test.worker_spec);
  const auto claims = mounted_claims(TrainingJob(job));
  REQUIRE(claims.size() == test.want);
  if (test.want == 1) CHECK(claims[0].volume + "/" + claims[0].claim == "data/c");
}

}  // namespace
}  // namespace sluice::api
