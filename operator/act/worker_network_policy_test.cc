#include "operator/act/worker_network_policy.h"

#include <nlohmann/json.hpp>

#include "operator/api/network_policy.h"
#include "operator/testing/reconciler_harness.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using control::testing::training_job;
using Harness = control::testing::ReconcilerHarness;
using control::testing::kVision;
using nlohmann::json;

constexpr const char* kFromTrainers =
    R"([{"podSelector": {"matchLabels": {"sluice.dev/job": "vision", "sluice.dev/component": "trainer"}}}])";

json policy(const Harness& harness) {
  const auto found = harness.cluster.get(api::kNetworkPolicies, "vision-workers");
  return found ? *found : json();
}

json at(const json& object, const char* pointer) {
  const json::json_pointer path(pointer);
  return object.contains(path) ? object.at(path) : json();
}

void reconcile(Harness& harness) {
  for (int round = 0; round < 3; ++round) REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
}

TEST_CASE("workers take data connections from the job's trainer alone, and show all their metrics and probes") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  reconcile(harness);
  const json made = policy(harness);
  CHECK(at(made, "/spec/podSelector/matchLabels") ==
        json{{"sluice.dev/job", "vision"}, {"sluice.dev/component", "worker"}});
  CHECK(at(made, "/spec/policyTypes") == json::array({"Ingress"}));
  REQUIRE(at(made, "/spec/ingress").size() == 2);
  CHECK(at(made, "/spec/ingress/0/from") == json::parse(kFromTrainers));
  CHECK(at(made, "/spec/ingress/0/ports") == json::parse(R"([{"port": 7471, "protocol": "TCP"}])"));
  CHECK(at(made, "/spec/ingress/1/from") == json::array());
  CHECK(at(made, "/spec/ingress/1/ports") ==
        json::parse(R"([{"port": 9464, "protocol": "TCP"}, {"port": 9465, "protocol": "TCP"}])"));
  CHECK(at(made, "/metadata/ownerReferences/0/uid") == "uid-vision");
}

TEST_CASE("a trainer on its node's network has no address of a pod: its workers let all in, as long as it runs") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  reconcile(harness);
  json& template_spec = harness.cluster.at(kube::kTrainingJobs, "vision")["spec"]["trainer"]["template"]["spec"];
  template_spec["hostNetwork"] = true;
  reconcile(harness);
  CHECK(at(policy(harness), "/spec/ingress/0/from") == json::array());
  // The Job keeps its template, whatever the spec says later.
  template_spec.erase("hostNetwork");
  json& kept = harness.cluster.at(kube::kJobs, "vision")["spec"]["template"]["spec"];
  kept["hostNetwork"] = true;
  reconcile(harness);
  CHECK(at(policy(harness), "/spec/ingress/0/from") == json::array());
  kept.erase("hostNetwork");
  reconcile(harness);
  CHECK(at(policy(harness), "/spec/ingress/0/from") == json::parse(kFromTrainers));
}

TEST_CASE("a policy that was edited or deleted is put right; switched off, it goes") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  reconcile(harness);
  harness.cluster.at(api::kNetworkPolicies, "vision-workers")["spec"]["ingress"][0]["from"] = json::array();
  reconcile(harness);
  CHECK(at(policy(harness), "/spec/ingress/0/from") == json::parse(kFromTrainers));
  harness.cluster.remove(api::kNetworkPolicies, "vision-workers");
  reconcile(harness);
  CHECK_FALSE(policy(harness).is_null());
  harness.config.guard_workers = false;
  reconcile(harness);
  CHECK(policy(harness).is_null());
}

TEST_CASE("a policy that is refused keeps no job from training") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  harness.fail = [](const kube::Action& action) -> Result<void> {
    if (action.resource == api::kNetworkPolicies) return Error(ErrorCode::kPermissionDenied, "quota");
    return {};
  };
  reconcile(harness);
  CHECK(policy(harness).is_null());
  CHECK(harness.cluster.get(kube::kJobs, "vision") != nullptr);
  harness.cluster.at(kube::kJobs, "vision")["status"] = {{"active", 1}, {"ready", 1}};
  harness.clock.advance(std::chrono::minutes(2));
  reconcile(harness);
  const json ready = api::field(*harness.cluster.get(kube::kTrainingJobs, "vision"), "/status/conditions").at(0);
  CHECK(ready["status"] == "True");
  CHECK_THAT(ready["message"].get<std::string>(), Catch::Contains("1 of 1 trainer pods") && Catch::Contains("quota"));
}

TEST_CASE("plain PyTorch has no workers to guard") {
  Harness harness;
  json job = training_job();
  job["spec"]["mode"] = "Off";
  harness.cluster.put(kube::kTrainingJobs, job);
  reconcile(harness);
  CHECK(policy(harness).is_null());
}

}  // namespace
}  // namespace sluice::act
