#include "operator/act/child_owner.h"

#include <nlohmann/json.hpp>

#include "operator/api/network_policy.h"
#include "operator/testing/reconciler_harness.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using namespace control::testing;
using nlohmann::json;
using Harness = ReconcilerHarness;

const kube::Resource kChildKinds[] = {kube::kJobs, kube::kServices, kube::kSecrets, kube::kDataWorkerPools,
                                      api::kNetworkPolicies};

TEST_CASE("whose an object is that bears a child's name, and the way out") {
  const json ours = {{"sluice.dev/job", "vision"}, {"app.kubernetes.io/managed-by", "sluice-operator"}};
  struct Case {
    const char* name;
    json metadata;
    const char* want;  // null: it is the job's own
  };
  const Case cases[] = {
      {"its own", {{"ownerReferences", {owner_reference("TrainingJob", "vision", "uid-vision")}}}, nullptr},
      {"of the one before",
       {{"labels", ours}, {"ownerReferences", {owner_reference("TrainingJob", "vision", "uid-before")}}},
       "Job vision belongs to an earlier TrainingJob of this name and goes with it; should it stay: "
       "kubectl delete -n default Job vision"},
      {"of another kind",
       {{"ownerReferences", {owner_reference("CronJob", "nightly", "uid-n")}}},
       "Job vision exists and belongs to CronJob nightly; delete it or rename the TrainingJob"},
      {"left without an owner",
       {{"labels", ours}},
       "Job vision is left of an earlier TrainingJob of this name, which was deleted without its children "
       "(--cascade=orphan), and has no owner now; rename this TrainingJob, or delete all that is left, which ends the "
       "training in it: kubectl delete -n default jobs,services,secrets,dataworkerpools,networkpolicies "
       "-l sluice.dev/job=vision"},
      {"of a person", json::object(),
       "Job vision exists and was not made by Sluice; delete it (kubectl delete -n default Job vision) or rename the "
       "TrainingJob"},
      {"of another job of ours",
       {{"labels", {{"sluice.dev/job", "speech"}, {"app.kubernetes.io/managed-by", "sluice-operator"}}}},
       "Job vision exists and was not made by Sluice; delete it (kubectl delete -n default Job vision) or rename the "
       "TrainingJob"}};
  for (const Case& test : cases) {
    INFO(test.name);
    json child = {{"metadata", test.metadata}};
    child["metadata"]["name"] = "vision";
    const auto checked = check_owner(training_job(), child, "Job");
    CHECK(checked.ok() == (test.want == nullptr));
    if (test.want == nullptr) continue;
    CHECK(checked.error().code() == ErrorCode::kAlreadyExists);
    CHECK(checked.error().message() == test.want);
  }
}

TEST_CASE("a job that was deleted without its children, and made again, comes up after the way out that it names") {
  Harness harness;
  json job = training_job();
  job["spec"]["trainer"]["replicas"] = 2;  // with all the children that there are
  harness.cluster.put(kube::kTrainingJobs, job);
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());

  job["metadata"]["uid"] = "uid-again";
  harness.cluster.put(kube::kTrainingJobs, job);
  for (const kube::Resource& kind : kChildKinds)
    for (const auto& [key, child] : harness.cluster.all(kind)) {
      json orphan = *child;
      orphan["metadata"].erase("ownerReferences");
      harness.cluster.put(kind, orphan);
    }
  harness.writes.clear();
  CHECK_FALSE(harness.jobs.reconcile(kVision, {}).ok());
  const json status = (*harness.cluster.get(kube::kTrainingJobs, "vision"))["status"];
  CHECK_THAT(status.dump(), Catch::Contains("ChildConflict") && Catch::Contains("-l sluice.dev/job=vision"));
  CHECK(harness.writes == std::vector<std::string>{"apply status of TrainingJob default/vision"});

  for (const kube::Resource& kind : kChildKinds)  // as the command does
    for (const auto& [key, child] : harness.cluster.all(kind))
      if (api::Object(*child).label("sluice.dev/job") == "vision") harness.cluster.remove(kind, key.name);
  harness.clock.advance(std::chrono::minutes(6));  // what is known of the Secret is believed for a while
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  harness.clock.advance(std::chrono::seconds(2));
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  const json healed = *harness.cluster.get(kube::kTrainingJobs, "vision");
  CHECK_THAT(healed["status"].dump(), !Catch::Contains("ChildConflict"));
  for (const kube::Resource& kind : kChildKinds) {
    INFO(kind.plural);
    CHECK_FALSE(harness.cluster.all(kind).empty());
    for (const auto& [key, child] : harness.cluster.all(kind))
      CHECK(api::Object(*child).controlled_by(api::Object(healed)));
  }
}

}  // namespace
}  // namespace sluice::act
