#include "operator/api/worker_template.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

json job_with(const std::string& worker_template) {
  json job = json::parse(R"({"metadata": {"name": "vision"}, "spec": {"dataWorkers": {
                             "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}}})");
  job["spec"]["dataWorkers"]["template"] = json::parse(worker_template);
  return job;
}

TEST_CASE("what Sluice needs itself is refused, with the field and the way out") {
  struct Case {
    const char* said;
    const char* want_field;
    const char* want_way_out;
  };
  const Case test = GENERATE(
      Case{R"({"metadata":{"labels":{"sluice.dev/job":"x"}}})", "t.metadata.labels", "take it out"},
      Case{R"({"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}})", "t.metadata.labels", "take it out"},
      Case{R"({"metadata":{"labels":null}})", "t.metadata.labels", "leave it out"},
      Case{R"({"spec":{"restartPolicy":null}})", "t.spec.restartPolicy", "take it out"},
      Case{R"({"spec":{"hostNetwork":true}})", "t.spec.hostNetwork", "take it out"},
      Case{R"({"spec":{"nodeName":"n"}})", "t.spec.nodeName", "use nodeSelector"},
      Case{R"({"spec":{"resources":{}}})", "t.spec.resources", "set spec.dataWorkers.resources"},
      Case{R"({"spec":{"automountServiceAccountToken":true}})", "t.spec.automountServiceAccountToken", "audience"},
      Case{R"({"spec":{"containers":null}})", "t.spec.containers", "leave it out"},
      Case{R"({"spec":{"volumes":null}})", "t.spec.volumes", "leave it out"},
      Case{R"({"spec":{"containers":[{"name":"log"}]}})", "t.spec.containers[0].name", "use initContainers"},
      Case{R"({"spec":{"containers":[{"name":"sluice-worker","args":["x"]}]}})", "t.spec.containers[0].args",
           "take it out"},
      Case{R"({"spec":{"containers":[{"name":"sluice-worker","resources":{}}]}})", "t.spec.containers[0].resources",
           "set spec.dataWorkers.resources"},
      Case{R"({"spec":{"containers":[{"name":"sluice-worker","env":null}]}})", "t.spec.containers[0].env", "leave it"},
      Case{
          R"({"spec":{"containers":[{"name":"sluice-worker","volumeMounts":[{"name":"v","mountPath":"/opt/sluice"}]}]}})",
          "t.spec.containers[0].volumeMounts", "choose another"},
      Case{
          R"({"spec":{"containers":[{"name":"sluice-worker","volumeMounts":[{"name":"v","mountPath":"//opt/sluice/"}]}]}})",
          "t.spec.containers[0].volumeMounts", "choose another"},
      Case{
          R"({"spec":{"containers":[{"name":"sluice-worker","volumeMounts":[{"name":"v","mountPath":"/etc/sluice/tls/x"}]}]}})",
          "t.spec.containers[0].volumeMounts", "choose another"},
      Case{
          R"({"spec":{"containers":[{"name":"sluice-worker","volumeMounts":[{"name":"v","mountPath":"/opt","readOnly":true}]}]}})",
          "t.spec.containers[0].volumeMounts", "choose another"},
      Case{R"({"spec":{"initContainers":[{"name":"a"},{"name":"sluice-bundle","image":"x"}]}})",
           "t.spec.initContainers[1].image", "take it out"},
      Case{R"({"spec":{"initContainers":[{"name":"sluice-other"}]}})", "t.spec.initContainers[0].name", "rename"},
      Case{R"({"spec":{"initContainers":[{"name":"a","restartPolicy":"Always"}]}})",
           "t.spec.initContainers[0].restartPolicy", "take it out"},
      Case{R"({"spec":{"initContainers":[{"name":"a","resources":{"requests":{"cpu":"501m"}}}]}})",
           "t.spec.initContainers[0].resources.requests.cpu", "lower it"},
      Case{R"({"spec":{"initContainers":[{"name":"a","resources":{"requests":{"memory":"257Mi"}}}]}})",
           "t.spec.initContainers[0].resources.requests.memory", "lower it"},
      Case{R"({"spec":{"volumes":[{"name":"sluice-tls"}]}})", "t.spec.volumes[0].name", "rename"},
      Case{R"({"spec":{"volumes":[{"name":"t","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]}})",
           "t.spec.volumes[0].projected", "set the audience"},
      Case{R"({"spec":{"nodeSelector":{"a":1}}})", "t.spec.nodeSelector", "correct it"},
      Case{R"({"spec":{"serviceAccountName":["a"]}})", "t.spec.serviceAccountName", "correct it"},
      Case{R"([1])", "t must be an object", "correct it"});
  INFO(test.said);
  const json job = job_with(test.said);
  const Result<void> checked = check_worker_template(TrainingJob(job), "t");
  REQUIRE_FALSE(checked.ok());
  CHECK(checked.error().code() == ErrorCode::kInvalidArgument);
  CHECK_THAT(checked.error().message(), Catch::StartsWith(test.want_field) && Catch::Contains(test.want_way_out));
}

TEST_CASE("what fits workers into a cluster is taken") {
  const char* said = GENERATE(
      "null", "{}", R"({"metadata":null,"spec":null})",
      R"({"metadata":{"labels":{"team":"a"},"annotations":{"b":"c"}}})",
      R"({"spec":{"nodeSelector":{"pool":"cpu","zone":null},"tolerations":[],"affinity":{},"schedulerName":"other"}})",
      R"({"spec":{"serviceAccountName":"trainer","priorityClassName":"low","topologySpreadConstraints":[{"maxSkew":1}]}})",
      R"({"spec":{"volumes":[{"name":"t","projected":{"sources":[{"serviceAccountToken":{"audience":"sts"}}]}}]}})",
      R"({"spec":{"initContainers":[{"name":"sluice-bundle","resources":{"requests":{"cpu":"500m"}}},{"name":"fetch"}]}})",
      R"({"spec":{"containers":[{"name":"sluice-worker","image":"i","env":[{"name":"A"}],"securityContext":{}}]}})");
  INFO(said);
  const json job = job_with(said);
  CHECK(check_worker_template(TrainingJob(job), "t").ok());
}

TEST_CASE("where Sluice chooses the workers' size, what comes before them fits into the smallest") {
  json job = job_with(
      R"({"spec":{"initContainers":[{"name":"sluice-bundle","resources":{"requests":{"cpu":"250m","memory":"128Mi"}}}]}})");
  job["spec"]["dataWorkers"].erase("resources");
  CHECK(check_worker_template(TrainingJob(job), "t").ok());
  job["spec"]["dataWorkers"]["autoResources"] = {{"cpu", "800m"}};
  CHECK_THAT(
      check_worker_template(TrainingJob(job), "t").error().message(),
      Catch::Contains("must not exceed the 200m that spec.dataWorkers.autoResources.cpu gives the smallest worker"));
  job["spec"]["dataWorkers"]["autoResources"] = {{"cpu", "300m"}};
  CHECK_THAT(check_worker_template(TrainingJob(job), "t").error().message(),
             Catch::Contains("must not exceed the 150m"));
  job["spec"]["dataWorkers"]["autoResources"] = {{"minMemory", "64Mi"}};
  CHECK_THAT(check_worker_template(TrainingJob(job), "t").error().message(),
             Catch::Contains("must not exceed spec.dataWorkers.autoResources.minMemory"));
}

}  // namespace
}  // namespace sluice::api
