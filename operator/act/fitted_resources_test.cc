#include "operator/act/fitted_resources.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/names.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using namespace control::testing;
using nlohmann::json;

std::vector<kube::ObjectPointer> limit_range(const char* limits) {
  return {shared(
      {{"metadata", {{"name", "team"}, {"namespace", "default"}}}, {"spec", {{"limits", json::parse(limits)}}}})};
}

TrainingJobWorld world(json job, const char* limits) {
  TrainingJobWorld world;
  world.training_job = shared(std::move(job));
  world.limit_ranges = limit_range(limits);
  return world;
}

Result<TlsIdentity> no_identity(const std::string&) { return TlsIdentity{"authority", "certificate", "key"}; }

json body_of(const TrainingJobWorld& world, const kube::Resource& resource) {
  const auto actions = reconcile_children(world, test_config(), no_identity);
  for (const kube::Action& action : *actions)
    if (action.resource == resource) return action.body;
  return {};
}

json container(const json& pod_spec, const char* list, std::string_view name) {
  for (const json& each : pod_spec.at(list))
    if (each.at("name") == name) return each;
  return {};
}

// 250m and 768Mi are the schema's default, 512Mi that of the arena.
json job_with_feeder(const char* resources = R"({"requests": {"cpu": "250m", "memory": "768Mi"}})",
                     const char* arena = "512Mi") {
  json job = training_job();
  job["spec"]["feeder"] = {{"resources", json::parse(resources)}, {"arena", arena}};
  return job;
}

constexpr const char* kTight = R"([{"type": "Container", "min": {"cpu": "100m", "memory": "64Mi"},
    "max": {"cpu": "4", "memory": "8Gi"}, "default": {"cpu": "4", "memory": "8Gi"},
    "maxLimitRequestRatio": {"cpu": "2", "memory": "2"}}])";

TEST_CASE("the containers that Sluice adds keep the bounds of a LimitRange, in trainers and in workers") {
  const TrainingJobWorld tight = world(job_with_feeder(), kTight);
  const json bundle =
      json::parse(R"({"requests": {"cpu": "125m", "memory": "64Mi"}, "limits": {"cpu": "250m", "memory": "128Mi"}})");
  const json trainer = body_of(tight, kube::kJobs)["spec"]["template"]["spec"];
  CHECK(container(trainer, "initContainers", api::kBundleContainer)["resources"] == bundle);
  const json worker = body_of(tight, kube::kDataWorkerPools)["spec"]["template"]["spec"];
  CHECK(container(worker, "initContainers", api::kBundleContainer)["resources"] == bundle);
  // With the namespace's default limit of 4 cores, 250m would be a sixteenth.
  CHECK(container(trainer, "initContainers", api::kFeederContainer)["resources"] ==
        json::parse(
            R"({"requests": {"cpu": "250m", "memory": "768Mi"}, "limits": {"cpu": "500m", "memory": "1536Mi"}})"));
}

TEST_CASE("a feeder without a size gets memory for its arena") {
  const char* const schema = R"({"requests": {"cpu": "250m", "memory": "768Mi"}})";
  const auto memory = [](const json& job) {
    const json trainer = body_of(world(job, "[]"), kube::kJobs)["spec"]["template"]["spec"];
    return container(trainer, "initContainers", api::kFeederContainer)["resources"]["requests"].value("memory", "");
  };
  CHECK(memory(job_with_feeder(schema, "512Mi")) == "768Mi");
  CHECK(memory(job_with_feeder(schema, "4Gi")) == "4352Mi");
  CHECK(memory(job_with_feeder(schema, "64Mi")) == "320Mi");
  CHECK(memory(job_with_feeder(R"({"requests": {"cpu": "250m", "memory": "1Gi"}})", "4Gi")) == "1Gi");
  CHECK(memory(job_with_feeder(R"({"requests": {"cpu": "1"}})", "4Gi")).empty());
}

// Of the whole pod; and a limit of 4 cores for containers that state none.
constexpr const char* kTightPods = R"([{"type": "Pod", "max": {"cpu": "4", "memory": "8Gi"}},
    {"type": "Container", "default": {"cpu": "4"}}])";

json job_with_trainer(const char* cpu) {
  json job = job_with_feeder();
  const json amounts = {{"cpu", cpu}, {"memory", "1Gi"}};
  job["spec"]["trainer"]["template"]["spec"]["containers"][0]["resources"] = {{"requests", amounts},
                                                                              {"limits", amounts}};
  return job;
}

TEST_CASE("a feeder gets what the bounds of whole pods leave beside the trainer") {
  const TrainingJobWorld seen = world(job_with_trainer("1"), kTightPods);
  const json trainer = body_of(seen, kube::kJobs)["spec"]["template"]["spec"];
  CHECK(container(trainer, "initContainers", api::kFeederContainer)["resources"] ==
        json::parse(
            R"({"requests": {"cpu": "250m", "memory": "768Mi"}, "limits": {"cpu": "3000m", "memory": "7168Mi"}})"));
  CHECK(objection_to_trainers(seen).empty());
  CHECK(api::ContainerBounds(seen.limit_ranges).objection_to_pod(trainer, "it").empty());
}

TEST_CASE("a feeder is not made smaller than it needs: what the pod has together is named") {
  const TrainingJobWorld seen = world(job_with_trainer("3900m"), kTightPods);
  const json trainer = body_of(seen, kube::kJobs)["spec"]["template"]["spec"];
  CHECK(container(trainer, "initContainers", api::kFeederContainer)["resources"] ==
        json::parse(R"({"requests": {"cpu": "250m", "memory": "768Mi"}})"));
  CHECK(objection_to_trainers(seen) ==
        "the sum of limits.cpu in a trainer's pod is 7900m, and the namespace's LimitRange allows no more than 4000m: "
        "lower it");
}

TEST_CASE("the copying container keeps the bounds of whole pods; a worker's pod that breaks them is named") {
  json job = job_with_trainer("1");
  job["spec"]["dataWorkers"]["resources"] =
      json::parse(R"({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}})");
  TrainingJobWorld seen =
      world(job, R"([{"type": "Pod", "max": {"cpu": "200m"}, "maxLimitRequestRatio": {"memory": "2"}}])");
  CHECK(objection_to_workers(seen).empty());  // until there is a pool
  const json pool = body_of(seen, kube::kDataWorkerPools);
  CHECK(container(pool["spec"]["template"]["spec"], "initContainers", api::kBundleContainer)["resources"] ==
        json::parse(R"({"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}})"));
  seen.pool = shared(pool);
  CHECK(objection_to_workers(seen) ==
        "the sum of limits.cpu in a worker's pod is 1000m, and the namespace's LimitRange allows no more than 200m: "
        "lower it");
}

TEST_CASE("a feeder without a size says its limit where the namespace's default is less than it asks for") {
  const TrainingJobWorld small =
      world(job_with_feeder(), R"([{"type": "Container", "default": {"cpu": "100m", "memory": "128Mi"}}])");
  const json trainer = body_of(small, kube::kJobs)["spec"]["template"]["spec"];
  CHECK(
      container(trainer, "initContainers", api::kFeederContainer)["resources"] ==
      json::parse(R"({"requests": {"cpu": "250m", "memory": "768Mi"}, "limits": {"cpu": "250m", "memory": "768Mi"}})"));
}

TEST_CASE("without a LimitRange in the way, nothing changes") {
  TrainingJobWorld plain = world(job_with_feeder(), "[]");
  const json with = body_of(plain, kube::kJobs);
  plain.limit_ranges.clear();
  CHECK(with == body_of(plain, kube::kJobs));
}

TEST_CASE("what the user has written stays, and is named where it is refused") {
  struct Row {
    const char* situation;
    const char* pointer;  // into the TrainingJob
    const char* resources;
    const char* want_trainers;
    const char* want_workers;
  };
  const char* const ok = R"({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}})";
  const Row row =
      GENERATE_COPY(Row{"all within", "/spec/feeder/resources", ok, "", ""},
                    Row{"a feeder", "/spec/feeder/resources",
                        R"({"requests": {"cpu": "1", "memory": "32Mi"}, "limits": {"cpu": "1"}})",
                        "spec.feeder.resources.requests.memory is 32Mi, and the namespace's LimitRange allows no less "
                        "than 64Mi: raise "
                        "it",
                        ""},
                    Row{"a worker", "/spec/dataWorkers/resources",
                        R"({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "1Gi"}})", "",
                        "spec.dataWorkers.resources.limits.cpu is 3000m, and the namespace's LimitRange allows no more "
                        "than 2 times the "
                        "request: lower it, or raise spec.dataWorkers.resources.requests.cpu"},
                    Row{"a trainer", "/spec/trainer/template/spec/containers/0/resources",
                        R"({"requests": {"cpu": "6", "memory": "8Gi"}, "limits": {"cpu": "6", "memory": "8Gi"}})",
                        "spec.trainer.template.spec.containers[0].resources.limits.cpu is 6000m, and the namespace's "
                        "LimitRange allows "
                        "no more than 4000m: lower it",
                        ""});
  CAPTURE(row.situation);
  json job = training_job();
  for (const char* pointer :
       {"/spec/feeder/resources", "/spec/dataWorkers/resources", "/spec/trainer/template/spec/containers/0/resources"})
    job[json::json_pointer(pointer)] = json::parse(ok);
  job[json::json_pointer(row.pointer)] = json::parse(row.resources);
  const TrainingJobWorld seen = world(job, kTight);
  CHECK(objection_to_trainers(seen) == row.want_trainers);
  CHECK(objection_to_workers(seen) == row.want_workers);
  const json trainer = body_of(seen, kube::kJobs)["spec"]["template"]["spec"];
  CHECK(container(trainer, "initContainers", api::kFeederContainer)["resources"] == job["spec"]["feeder"]["resources"]);
  const json worker = body_of(seen, kube::kDataWorkerPools)["spec"]["template"]["spec"];
  CHECK(container(worker, "containers", api::kWorkerContainer)["resources"] == job["spec"]["dataWorkers"]["resources"]);
}

}  // namespace
}  // namespace sluice::act
