// Nothing inside a pod template ends the operator, whatever is there: every node of one is replaced by every odd value.
// The CRDs refuse most of these today; objects that were stored before are still there.
#include <nlohmann/json.hpp>

#include "operator/act/data_worker_pool.h"
#include "operator/act/training_job.h"
#include "operator/api/conditions.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/pod_template.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using control::testing::shared;
using nlohmann::json;

const json kOddValues = json::parse(R"([null, "x", "", 7, -1.5, true, [], ["data"], [{}], [[1]], {}, {"a": {}},
                                        {"name": 7}, [{"name": 7}], [{"name": "x", "unknown": {"y": [1]}}]])");

// JSON pointers to every node below `value`.
void find_nodes(const json& value, const json::json_pointer& place, std::vector<json::json_pointer>& nodes) {
  nodes.push_back(place);
  if (value.is_object())
    for (const auto& [name, member] : value.items()) find_nodes(member, place / name, nodes);
  if (value.is_array())
    for (std::size_t index = 0; index < value.size(); ++index) find_nodes(value[index], place / index, nodes);
}

// Calls `check` with every variant of `object` in which a node of its pod template at `root` is another one or away.
void for_each_variant(const json& object, const char* root, const std::function<void(const json&)>& check) {
  const json::json_pointer place(root);
  std::vector<json::json_pointer> nodes;
  find_nodes(object.at(place), place, nodes);
  for (const json::json_pointer& node : nodes) {
    for (const json& odd : kOddValues) {
      json variant = object;
      variant[node] = odd;
      INFO(node.to_string() << " = " << odd.dump());
      check(variant);
    }
    json variant = object;
    json& parent = variant[node.parent_pointer()];
    parent.is_object() ? parent.erase(node.back()) : (parent.erase(std::stoul(node.back())), 0);
    INFO("without " << node.to_string());
    check(variant);
  }
}

TEST_CASE("a TrainingJob with anything in its pod template is carried out or refused with the field's name") {
  const control::Config config = control::testing::test_config();
  const IdentitySource make_identity = [](const std::string&) { return TlsIdentity{"ca", "cert", "key"}; };
  int refused = 0;
  for_each_variant(control::testing::training_job(), "/spec/trainer/template", [&](const json& variant) {
    TrainingJobWorld world;
    world.training_job = shared(variant);
    std::optional<Result<std::vector<kube::Action>>> made;
    REQUIRE_NOTHROW(made = reconcile_children(world, config, make_identity));
    if (made->ok()) return;
    ++refused;
    CHECK(made->error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(made->error().message(), Catch::Contains("spec.trainer.template"));
  });
  CHECK(refused > 100);
}

TEST_CASE("anything in dataWorkers.template makes workers that Sluice can use, or is refused with the field's name") {
  const control::Config config = control::testing::test_config();
  const IdentitySource make_identity = [](const std::string&) { return TlsIdentity{"ca", "cert", "key"}; };
  json job = control::testing::training_job();
  job["spec"]["dataWorkers"]["template"] = json::parse(
      R"({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
          "spec": {"serviceAccountName": "trainer", "priorityClassName": "low", "nodeSelector": {"pool": "cpu"},
                   "affinity": {"nodeAffinity": {"x": []}}, "tolerations": [{"key": "cpu"}],
                   "volumes": [{"name": "data", "projected": {"sources": [{"serviceAccountToken": {"audience": "a"}}]}}],
                   "initContainers": [{"name": "sluice-bundle", "resources": {"requests": {"cpu": "10m"}}}],
                   "containers": [{"name": "sluice-worker", "env": [{"name": "A", "value": "B"}],
                                   "volumeMounts": [{"name": "data", "mountPath": "/more"}]}]}})");
  int refused = 0;
  int carried_out = 0;
  for_each_variant(job, "/spec/dataWorkers/template", [&](const json& variant) {
    TrainingJobWorld world;
    world.training_job = shared(variant);
    std::optional<Result<std::vector<kube::Action>>> made;
    REQUIRE_NOTHROW(made = reconcile_children(world, config, make_identity));
    ++(made->ok() ? carried_out : refused);
    if (!made->ok()) {
      CHECK(made->error().code() == ErrorCode::kInvalidArgument);
      CHECK_THAT(made->error().message(), Catch::Contains("spec.dataWorkers.template"));
      return;
    }
    for (const kube::Action& action : **made) {
      if (action.resource != kube::kDataWorkerPools) continue;
      const json& pod = action.body.at("spec").at("template");
      CHECK(api::check_pod_template(pod, "t").ok());
      CHECK(pod["spec"]["restartPolicy"] == "OnFailure");
      CHECK(pod["spec"]["containers"].size() == 1);
      CHECK(pod["spec"]["containers"][0]["name"] == "sluice-worker");
      CHECK(pod["spec"]["containers"][0]["resources"] == job["spec"]["dataWorkers"]["resources"]);
      CHECK(pod["spec"]["initContainers"][0]["image"] == config.image);
      CHECK(pod["metadata"]["labels"]["sluice.dev/component"] == "worker");
    }
  });
  CHECK(refused > 100);
  CHECK(carried_out > 50);
}

TEST_CASE("a DataWorkerPool with anything in its pod template makes workers or says why not") {
  json pod = json::parse(R"({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                             "spec": {"containers": [{"name": "sluice-worker", "env": [{"name": "A"}]}],
                                      "initContainers": [{"name": "sluice-bundle"}], "volumes": [{"name": "v"}]}})");
  for (const int replicas : {0, 1, 50}) {
    json pool = control::testing::pool(replicas);
    pool["spec"]["template"] = pod;
    for_each_variant(pool, "/spec/template", [&](const json& variant) {
      PoolWorld world;
      world.pool = shared(variant);
      std::optional<PoolStep> step;
      REQUIRE_NOTHROW(step = reconcile_pool(world, {}));
      if (!step->actions.empty()) CHECK(step->actions.size() == static_cast<std::size_t>(replicas));
      if (!step->actions.empty() || replicas == 0) return;
      REQUIRE(step->status);
      const auto ready = api::find_condition(step->status->body.at("status").at("conditions"), "Ready");
      CHECK(ready.status == "False");
      CHECK(ready.reason == api::kSpecRefused);
      CHECK_THAT(ready.message, Catch::Contains("spec.template"));
    });
  }
}

}  // namespace
}  // namespace sluice::act
