// A trainer of several pods is started again as a whole: the reconciler against the in-memory cluster.
#include "operator/api/gang_restart.h"

#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/fields.h"
#include "operator/api/names.h"
#include "operator/testing/reconciler_harness.h"
#include "src/base/testing/catch.h"
#include "src/kube/timestamp.h"

namespace sluice::act {
namespace {

using api::field;
using api::integer_field;
using api::text_field;
using control::testing::condition;
using control::testing::training_job;
using Harness = control::testing::ReconcilerHarness;
using control::testing::kVision;
using nlohmann::json;

json gang(int backoff_limit) {
  json job = training_job();
  job["spec"]["trainer"].update({{"replicas", 2}, {"backoffLimit", backoff_limit}});
  return job;
}

struct Gang : Harness {
  explicit Gang(const json& job) {
    cluster.put(kube::kTrainingJobs, job);
    settle();
  }

  // Until a step writes nothing.
  void settle() {
    for (int round = 0; round < 20; ++round) {
      const std::size_t before = writes.size();
      REQUIRE(jobs.reconcile(kVision, {}).ok());
      if (writes.size() == before) return;
    }
    FAIL("the reconciler does not come to rest");
  }

  void fail_job(const std::string& reason = "BackoffLimitExceeded") {
    json failed = condition("Failed", "True");
    failed["reason"] = reason;
    cluster.at(kube::kJobs, "vision")["status"] = {{"conditions", json::array({failed})}};
  }

  // Through the longest pause before a restart, too.
  void settle_later() {
    settle();
    clock.advance(std::chrono::minutes(6));
    settle();
  }

  // Now, after it has run for so long. How long the next Job is waited for.
  std::chrono::milliseconds fail_after(std::chrono::seconds ran, std::chrono::seconds clock_of_controller = {}) {
    const std::string started = kube::format_time(clock.wall_now() + clock_of_controller);
    clock.advance(ran);
    json failed = condition("Failed", "True");
    failed.update({{"reason", "BackoffLimitExceeded"},
                   {"lastTransitionTime", kube::format_time(clock.wall_now() + clock_of_controller)}});
    cluster.at(kube::kJobs, "vision")["status"] = {{"startTime", started}, {"conditions", json::array({failed})}};
    const std::string uid = uid_of_job();
    settle();
    std::chrono::milliseconds waited{0};
    for (int look = 0; look < 100 && uid_of_job() == uid; ++look) {
      const auto again = jobs.reconcile(kVision, {});
      REQUIRE((again.ok() && *again && **again <= std::chrono::minutes(1)));  // it comes back by itself
      clock.advance(**again);
      waited += **again;
      settle();
    }
    return waited;
  }

  json job() const { return cluster.get(kube::kJobs, "vision") ? *cluster.get(kube::kJobs, "vision") : json(); }
  std::string uid_of_job() const { return text_field(job(), "/metadata/uid"); }
  json status() const { return field(*cluster.get(kube::kTrainingJobs, "vision"), "/status"); }
  api::SeenCondition told(const char* type) const { return api::find_condition(status()["conditions"], type); }
  std::string restarts_of_job() const { return text_field(job(), "/metadata/annotations/sluice.dev~1restarts"); }
};

TEST_CASE("several trainer pods have a Service before they have a Job, which gives up at the first failure") {
  Gang gang_of_two(gang(3));
  CHECK(gang_of_two.writes[3] == "create Service default/vision-trainers");
  CHECK(gang_of_two.writes[4] == "create Job default/vision");
  CHECK(field(gang_of_two.job(), "/spec/backoffLimit") == 0);
  const json service = *gang_of_two.cluster.get(kube::kServices, "vision-trainers");
  CHECK(field(service, "/spec/clusterIP") == "None");
  CHECK(field(service, "/spec/publishNotReadyAddresses") == true);
  CHECK(field(service, "/spec/selector") == json{{"sluice.dev/job", "vision"}, {"sluice.dev/component", "trainer"}});
}

TEST_CASE("a Service of the trainers that was deleted is made again, and a changed one is put right") {
  Gang gang_of_two(gang(3));
  gang_of_two.writes.clear();
  SECTION("deleted") { gang_of_two.cluster.remove(kube::kServices, "vision-trainers"); }
  SECTION("changed") {
    gang_of_two.cluster.at(kube::kServices, "vision-trainers")["spec"]["publishNotReadyAddresses"] = false;
  }
  gang_of_two.settle();
  REQUIRE(gang_of_two.writes.size() == 1);
  CHECK(gang_of_two.writes[0].ends_with("Service default/vision-trainers"));
}

TEST_CASE("when a pod fails, the restart is counted, then the Job goes, then it is made again; the workers stay") {
  Gang gang_of_two(gang(3));
  gang_of_two.cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = 2;
  gang_of_two.settle();
  const json first = gang_of_two.job();
  gang_of_two.writes.clear();
  gang_of_two.events.clear();
  gang_of_two.fail_job();

  REQUIRE(gang_of_two.jobs.reconcile(kVision, {}).ok());
  CHECK(gang_of_two.writes == std::vector<std::string>{"apply status of TrainingJob default/vision"});
  CHECK(integer_field(gang_of_two.status(), "/restarts") == 1);
  CHECK(gang_of_two.told("Ready").reason == "TrainerRestarting");
  CHECK(gang_of_two.told("Failed").status == "False");
  CHECK(gang_of_two.events == std::vector<std::string>{"TrainerRestarted"});

  gang_of_two.settle_later();
  CHECK(gang_of_two.writes[1] == "delete Job default/vision");
  CHECK(gang_of_two.writes[2] == "create Job default/vision");
  CHECK(gang_of_two.restarts_of_job() == "1");
  CHECK(gang_of_two.job()["metadata"]["uid"] != first["metadata"]["uid"]);
  CHECK(gang_of_two.job()["spec"] == first["spec"]);
  CHECK(field(*gang_of_two.cluster.get(kube::kDataWorkerPools, "vision"), "/spec/replicas") == 2);
}

TEST_CASE(
    "a gang that fails again and again is started again less and less often; one that ran well is not made to wait") {
  using std::chrono::minutes;
  using std::chrono::seconds;
  Gang gang_of_two(gang(20));
  for (const int wait : {10, 20, 40, 80, 160, 320, 360, 360})
    CHECK(gang_of_two.fail_after(seconds(5)) == seconds(wait));
  CHECK(gang_of_two.fail_after(seconds(599)) == seconds(360));
  CHECK(gang_of_two.fail_after(minutes(10)) == seconds(10));
  CHECK(integer_field(gang_of_two.status(), "/restarts") == 10);
}

TEST_CASE("the wait for a restart is the same however wrong the clock of the Job controller is, or our own") {
  const auto wrong_by = std::chrono::seconds(GENERATE(-600, -11, 11, 600));
  Gang gang_of_two(gang(20));
  for (const int wait : {10, 20, 40})
    CHECK(gang_of_two.fail_after(std::chrono::seconds(5), wrong_by) == std::chrono::seconds(wait));
  CHECK(gang_of_two.fail_after(std::chrono::minutes(10), wrong_by) == std::chrono::seconds(10));
}

TEST_CASE("the pods of the Job that failed are gone before the next Job is made") {
  json job = gang(3);
  job["status"]["restarts"] = 1;
  json failed = condition("Failed", "True");
  failed["reason"] = "BackoffLimitExceeded";
  const json owner = control::testing::owner_reference("TrainingJob", "vision", "uid-vision");
  const json trainer = {{"metadata",
                         {{"name", "vision"},
                          {"namespace", "default"},
                          {"uid", "uid-job"},
                          {"annotations", {{"sluice.dev/feeder", "false"}}},
                          {"ownerReferences", json::array({owner})}}},
                        {"status", {{"conditions", json::array({failed})}}}};
  TrainingJobWorld world;
  world.training_job = control::testing::shared(job);
  world.job = control::testing::shared(trainer);
  world.job_failed_for = std::chrono::hours(1);  // nothing waits
  const auto identity = [](const std::string&) -> Result<TlsIdentity> { return TlsIdentity{}; };
  auto actions = reconcile_children(world, control::testing::test_config(), identity);
  REQUIRE(actions.ok());
  const kube::Action& last = actions->back();
  CHECK(last.to_string() == "delete Job default/vision");
  CHECK(last.uid == "uid-job");
  CHECK(last.propagation == kube::Propagation::kForeground);

  json leaving = trainer;
  leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  world.job = control::testing::shared(leaving);
  actions = reconcile_children(world, control::testing::test_config(), identity);
  REQUIRE(actions.ok());
  for (const kube::Action& action : *actions) CHECK(action.resource != kube::kJobs);
}

TEST_CASE("a gang is started again as often as backoffLimit says, then the job has failed") {
  Gang gang_of_two(gang(2));
  for (int restart = 1; restart <= 2; ++restart) {
    gang_of_two.fail_job();
    gang_of_two.settle_later();
    CHECK(gang_of_two.restarts_of_job() == std::to_string(restart));
  }
  gang_of_two.fail_job();
  gang_of_two.settle();
  CHECK(gang_of_two.told("Failed").is_true());
  CHECK(gang_of_two.told("Failed").reason == "BackoffLimitExceeded");
  CHECK(gang_of_two.told("Failed").message.find("started again 2 times") != std::string::npos);
  CHECK(field(*gang_of_two.cluster.get(kube::kDataWorkerPools, "vision"), "/spec/replicas").is_null());
  CHECK(integer_field(gang_of_two.status(), "/restarts") == 2);
}

TEST_CASE("what no retry helps is a failure at once") {
  json job = gang(3);
  std::string reason = "BackoffLimitExceeded";
  SECTION("a rule of the policy") { reason = "PodFailurePolicy"; }
  SECTION("the deadline") { reason = "DeadlineExceeded"; }
  SECTION("one pod: its Job has tried again by itself") { job["spec"]["trainer"]["replicas"] = 1; }
  SECTION("elastic: the same") { job["spec"]["trainer"]["elasticPolicy"] = {{"minReplicas", 1}}; }
  Gang trainer(job);
  trainer.fail_job(reason);
  trainer.settle();
  CHECK(trainer.told("Failed").is_true());
  CHECK_FALSE(trainer.status().contains("restarts"));
}

TEST_CASE("what a batch/v1 Job knows reaches the Job as it is") {
  json job = training_job();
  const json policy =
      json::parse(R"({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]})");
  const json success = json::parse(R"({"rules": [{"succeededIndexes": "0"}]})");
  job["spec"]["trainer"].update(
      {{"backoffLimit", 2}, {"activeDeadlineSeconds", 3600}, {"podFailurePolicy", policy}, {"successPolicy", success}});
  const Gang trainer(job);
  const json spec = trainer.job()["spec"];
  CHECK(spec["backoffLimit"] == 2);
  CHECK(spec["activeDeadlineSeconds"] == 3600);
  CHECK(spec["podFailurePolicy"] == policy);
  CHECK(spec["successPolicy"] == success);
}

TEST_CASE("a Job is told when to go only once its end is in the status") {
  json job = training_job();
  job["spec"]["trainer"]["ttlSecondsAfterFinished"] = 0;
  Gang trainer(job);
  CHECK(field(trainer.job(), "/spec/ttlSecondsAfterFinished").is_null());
  trainer.cluster.at(kube::kJobs, "vision")["status"]["conditions"] = json::array({condition("Complete", "True")});
  trainer.writes.clear();
  trainer.settle();
  const std::vector<std::string> want = {"apply status of TrainingJob default/vision", "patch Job default/vision"};
  CHECK(trainer.writes == want);
  CHECK(field(trainer.job(), "/spec/ttlSecondsAfterFinished") == 0);
  trainer.cluster.remove(kube::kJobs, "vision");  // by the controller of Kubernetes
  trainer.writes.clear();
  trainer.settle();
  CHECK(trainer.writes.empty());
  CHECK(trainer.told("Succeeded").is_true());
}

TEST_CASE("one trainer pod has neither a Service of trainers nor any of a gang's fields") {
  const Gang alone(training_job());
  CHECK(alone.cluster.get(kube::kServices, "vision-trainers") == nullptr);
  const json spec = alone.job()["spec"];
  std::vector<std::string> fields;
  for (const auto& [name, value] : spec.items()) fields.push_back(name);
  CHECK(fields == std::vector<std::string>{"completionMode", "completions", "parallelism", "suspend", "template"});
  CHECK_FALSE(alone.job()["metadata"]["annotations"].contains("sluice.dev/restarts"));
}

}  // namespace
}  // namespace sluice::act
