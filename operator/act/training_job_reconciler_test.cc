// The impure shells around the steps, against the in-memory cluster.
#include "operator/act/training_job_reconciler.h"

#include <nlohmann/json.hpp>
#include <set>

#include "operator/act/pod_parts.h"
#include "operator/api/fields.h"
#include "operator/api/network_policy.h"
#include "operator/api/persistent_volume_claim.h"
#include "operator/api/tls_secret.h"
#include "operator/api/trainer_job.h"
#include "operator/api/training_job.h"
#include "operator/testing/reconciler_harness.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::field;
using api::text_field;
using Harness = control::testing::ReconcilerHarness;
using control::testing::kVision;
using control::testing::owner_reference;
using control::testing::training_job;
using nlohmann::json;

std::string ready_reason(Harness& harness) {
  const auto job = harness.cluster.get(kube::kTrainingJobs, "vision");
  for (const json& condition : field(*job, "/status/conditions"))
    if (text_field(condition, "/type") == "Ready") return text_field(condition, "/reason");
  return "";
}

TEST_CASE("a job is brought up, and then left alone") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(harness.writes == std::vector<std::string>{"create Secret default/vision-sluice-tls",
                                                   "create Service default/vision-workers",
                                                   "apply DataWorkerPool default/vision", "create Job default/vision",
                                                   "create NetworkPolicy default/vision-workers",
                                                   "apply status of TrainingJob default/vision"});
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());  // the status now knows the Job
  harness.writes.clear();
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(harness.writes.empty());
}

// Another job whose feeder would have the ports of `job`'s, were it alone.
json job_with_the_same_ports(const json& job) {
  const json on_host = {{"hostNetwork", true}};
  const auto port = [&](const json& of) { return executor_ports(on_host, api::Object(of), {}).metrics; };
  json other = job;
  for (int number = 0; number == 0 || port(other) != port(job); ++number)
    other["metadata"]["name"] = "speech-" + std::to_string(number);
  other["metadata"]["uid"] = "uid-speech";
  return other;
}

TEST_CASE("two trainers on their nodes' network get different ports, though their names ask for the same") {
  Harness harness;
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["hostNetwork"] = true;
  const json other = job_with_the_same_ports(job);
  const std::string name = other["metadata"]["name"];
  harness.cluster.put(kube::kTrainingJobs, job);
  harness.cluster.put(kube::kTrainingJobs, other);
  const auto ports_of = [&](const std::string& trainer_job) {
    return api::TrainerJob(*harness.cluster.get(kube::kJobs, trainer_job)).host_ports();
  };
  SECTION("the first one's Job is seen") {}
  SECTION("it was made a moment ago") { harness.unseen = "Job"; }
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  REQUIRE(harness.jobs.reconcile({"default", name}, {}).ok());
  const std::set<std::int64_t> first = ports_of("vision"), second = ports_of(name);
  CHECK(first.size() == 2);
  CHECK(second.size() == 2);
  CHECK(*second.begin() == *first.begin() + 2);
}

TEST_CASE("while pods are to be written, figures wait and are one status then; a condition that turns does not wait") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  for (int i = 0; i < 2; ++i) REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  const auto desired = [&] {
    return field(*harness.cluster.get(kube::kTrainingJobs, "vision"), "/status/workers/desired").get<int>();
  };
  harness.busy = std::chrono::seconds(20);
  harness.cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = 3;
  CHECK(*harness.jobs.reconcile(kVision, {}) == std::chrono::seconds(20));
  harness.clock.advance(std::chrono::seconds(5));
  harness.cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = 4;
  CHECK(*harness.jobs.reconcile(kVision, {}) == std::chrono::seconds(20));
  CHECK(desired() == 0);
  SECTION("for a minute at most") {
    harness.clock.advance(std::chrono::seconds(54));
    CHECK(*harness.jobs.reconcile(kVision, {}) == std::chrono::seconds(1));
    harness.clock.advance(std::chrono::seconds(1));
    CHECK(*harness.jobs.reconcile(kVision, {}) == std::nullopt);
    CHECK(desired() == 4);
  }
  SECTION("until the pods are written") {
    harness.busy = std::chrono::seconds(0);
    CHECK(*harness.jobs.reconcile(kVision, {}) == std::nullopt);
    CHECK(desired() == 4);
  }
  SECTION("unless the trainer starts") {
    harness.cluster.at(kube::kJobs, "vision")["status"] = {{"active", 1}, {"ready", 1}};
    CHECK(*harness.jobs.reconcile(kVision, {}) == std::nullopt);
    CHECK(ready_reason(harness) == "TrainerRunning");
    CHECK(desired() == 4);
  }
}

TEST_CASE("what changes within a second is one status") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  for (int i = 0; i < 2; ++i) REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  harness.clock.advance(std::chrono::seconds(10));
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  harness.writes.clear();
  for (int replicas = 1; replicas <= 4; ++replicas) {
    harness.cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = replicas;
    CHECK(*harness.jobs.reconcile(kVision, {}) == std::chrono::milliseconds(1250 - 250 * replicas));
    harness.clock.advance(std::chrono::milliseconds(250));
  }
  CHECK(harness.writes.empty());
  CHECK(*harness.jobs.reconcile(kVision, {}) == std::nullopt);
  CHECK(harness.writes == std::vector<std::string>{"apply status of TrainingJob default/vision"});
  CHECK(field(*harness.cluster.get(kube::kTrainingJobs, "vision"), "/status/workers/desired") == 4);
}

TEST_CASE("the Secret is read by name, and believed for five minutes") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  for (int i = 0; i < 5; ++i) REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(std::count(harness.reads.begin(), harness.reads.end(), "Secret") == 2);  // absent, then present
  harness.clock.advance(std::chrono::minutes(6));
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(std::count(harness.reads.begin(), harness.reads.end(), "Secret") == 3);
}

TEST_CASE("a claim that one node at a time can mount keeps the workers away, until workers have another volume") {
  Harness harness;
  json job = training_job();
  job["spec"]["dataWorkers"]["min"] = 2;
  harness.cluster.put(kube::kTrainingJobs, job);
  harness.cluster.put(api::kPersistentVolumeClaims, {{"metadata", {{"name", "photos"}, {"namespace", "default"}}},
                                                     {"spec", {{"accessModes", json::array({"ReadWriteOnce"})}}}});
  const auto may_have_workers = [&] {
    REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
    return api::view_training_job(*harness.cluster.get(kube::kTrainingJobs, "vision"))->may_have_workers();
  };
  CHECK_FALSE(may_have_workers());
  CHECK(harness.events == std::vector<std::string>{"DataOnlyInTrainer"});
  harness.cluster.at(kube::kTrainingJobs, "vision")["spec"]["dataWorkers"]["template"]["spec"]["volumes"] =
      json::parse(R"([{"name": "data", "emptyDir": {}}])");
  CHECK(may_have_workers());
  const json pool = *harness.cluster.get(kube::kDataWorkerPools, "vision");
  CHECK(api::list_field(pool, "/spec/template/spec/volumes").at(0) ==
        json::parse(R"({"name": "data", "emptyDir": {}})"));
}

TEST_CASE("a Secret that was deleted is made again with the certificates that the feeder and the workers hold") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  for (int i = 0; i < 2; ++i) REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  const json stored = *harness.cluster.get(kube::kSecrets, "vision-sluice-tls");
  harness.clock.advance(std::chrono::minutes(6));
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  const auto secret_without = [&](TrainingJobReconciler& reconciler) {
    harness.cluster.remove(kube::kSecrets, "vision-sluice-tls");
    harness.clock.advance(std::chrono::minutes(6));
    REQUIRE(reconciler.reconcile(kVision, {}).ok());
    const auto secret = harness.cluster.get(kube::kSecrets, "vision-sluice-tls");
    REQUIRE(secret);
    return *secret;
  };
  harness.events.clear();
  SECTION("by the operator that saw it") {
    const json again = secret_without(harness.jobs);
    CHECK(again["data"] == stored["data"]);
    CHECK(harness.events.empty());
  }
  SECTION("by one that never saw it, with new ones, which it says") {
    TrainingJobReconciler next(
        harness.seams(), [](const kube::ObjectKey&) { return std::vector<kube::ObjectPointer>(); }, harness.config,
        harness.board, harness.clock);
    CHECK(secret_without(next)["data"] != stored["data"]);
    CHECK(harness.events == std::vector<std::string>{"CertificatesReplaced"});
  }
  SECTION("but another job of the name gets its own") {
    harness.cluster.at(kube::kTrainingJobs, "vision")["metadata"]["uid"] = "uid-of-another";
    for (const kube::Resource& kind : {kube::kJobs, kube::kServices, kube::kDataWorkerPools})
      harness.cluster.remove(kind, kind == kube::kServices ? "vision-workers" : "vision");
    harness.cluster.remove(api::kNetworkPolicies, "vision-workers");
    CHECK(secret_without(harness.jobs)["data"] != stored["data"]);
  }
}

TEST_CASE("a job that runs for half a year always has certificates that end in weeks, not days, and keeps its Secret") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  const auto secret = [&] { return *harness.cluster.get(kube::kSecrets, "vision-sluice-tls"); };
  std::set<std::string> shown;
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  const std::string uid = secret()["metadata"]["uid"];
  for (int day = 0; day < 183; ++day) {
    REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
    const json now = secret();
    const auto validity = validity_of(api::TlsSecret(now).text("tls.crt"));
    REQUIRE(validity.ok());
    CHECK(validity->until - harness.clock.wall_now() > std::chrono::hours(28 * 24));
    CHECK(now["metadata"]["uid"] == uid);
    shown.insert(now["data"]["tls.crt"]);
    harness.clock.advance(std::chrono::hours(24));
  }
  CHECK(shown.size() == 4);  // made on the days 0, 60, 120 and 180
  CHECK(harness.events == std::vector<std::string>{});
}

TEST_CASE("a Secret that another replica has changed meanwhile is not written over, but read again") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  json& secret = harness.cluster.at(kube::kSecrets, "vision-sluice-tls");
  secret["metadata"]["resourceVersion"] = "7";
  harness.clock.advance(std::chrono::hours(60 * 24 - 8) - std::chrono::minutes(1));  // of 91 days a third is left
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  secret["metadata"]["resourceVersion"] = "8";
  secret["metadata"]["labels"] = {{"by", "the other"}};
  const json before = secret;
  harness.clock.advance(std::chrono::minutes(2));  // due, and too soon for another look
  const auto behind = harness.jobs.reconcile(kVision, {});
  REQUIRE_FALSE(behind.ok());
  CHECK(behind.error().code() == ErrorCode::kConflict);
  CHECK(secret == before);
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(secret["data"].contains("next.crt"));
  CHECK(secret["metadata"] == before["metadata"]);
}

TEST_CASE("a Secret's certificates are not read again while it has the same version") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  for (int i = 0; i < 2; ++i) REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  json& secret = harness.cluster.at(kube::kSecrets, "vision-sluice-tls");
  secret["data"]["tls.crt"] = "";  // no API server changes an object without its version
  const std::string version = secret["metadata"].value("resourceVersion", "");
  harness.clock.advance(std::chrono::minutes(6));
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(secret["data"]["tls.crt"] == "");
  secret["metadata"]["resourceVersion"] = version + "1";
  harness.clock.advance(std::chrono::minutes(6));
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(secret["data"]["tls.crt"] != "");
}

TEST_CASE("the private key appears in the Secret only") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  const auto secret = harness.cluster.get(kube::kSecrets, "vision-sluice-tls");
  const std::string all = harness.cluster.comparable().dump();  // which drops the Secret's data
  CHECK(all.find("PRIVATE KEY") == std::string::npos);
  CHECK(all.find(text_field(*secret, "/data/tls.key")) == std::string::npos);
  CHECK(api::TlsSecret(*secret).text("tls.key").find("PRIVATE KEY") != std::string::npos);
}

TEST_CASE("a stranger's Job that we do not watch is reported, not touched") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  const json stranger = {{"metadata", {{"name", "vision"}, {"namespace", "default"}, {"uid", "uid-s"}}}};
  harness.cluster.put(kube::kJobs, stranger);
  harness.unseen = "Job";
  CHECK_FALSE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(ready_reason(harness) == "ChildConflict");
  CHECK(*harness.cluster.get(kube::kJobs, "vision") == stranger);
  CHECK(harness.events == std::vector<std::string>{"ChildConflict"});
}

TEST_CASE("what is refused to a job that has a status is told a second later, and tried again now and then") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  ErrorCode code = ErrorCode::kUnavailable;
  harness.fail = [&](const kube::Action& action) -> Result<void> {
    if (action.resource == kube::kJobs) return Error(code, "no");
    return {};
  };
  CHECK_FALSE(harness.jobs.reconcile(kVision, {}).ok());
  code = ErrorCode::kPermissionDenied;
  CHECK(*harness.jobs.reconcile(kVision, {}) == std::chrono::seconds(1));
  harness.clock.advance(std::chrono::seconds(1));
  CHECK(*harness.jobs.reconcile(kVision, {}) <= std::chrono::minutes(1));
  CHECK(ready_reason(harness) == "Forbidden");
}

TEST_CASE("our own Job that the informers do not show yet is met, not reported") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  harness.unseen = "Job";
  CHECK(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(ready_reason(harness) == "TrainerStarting");
}

TEST_CASE("what the API server refuses is in the status and is not hammered") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  harness.fail = [](const kube::Action& action) -> Result<void> {
    if (action.resource == kube::kJobs)
      return invalid_argument("spec.template.spec.containers[0].image: Required value");
    return {};
  };
  const auto again = harness.jobs.reconcile(kVision, {});
  REQUIRE(again.ok());
  CHECK(*again == std::chrono::minutes(1));
  CHECK(ready_reason(harness) == "SpecRefused");
}

TEST_CASE("an API server that is away is an error to be retried, and no word in the status") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  harness.fail = [](const kube::Action& action) -> Result<void> {
    if (action.resource == kube::kJobs) return unavailable("connection refused");
    return {};
  };
  CHECK_FALSE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(ready_reason(harness) == "TrainerStarting");
}

TEST_CASE("a webhook that does not answer is named in the status") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  harness.fail = [](const kube::Action& action) -> Result<void> {
    if (action.resource == kube::kJobs)
      return internal_error("failed calling webhook \"a.example\": deadline exceeded");
    return {};
  };
  CHECK_FALSE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(field(*harness.cluster.get(kube::kTrainingJobs, "vision"), "/status/conditions").at(0)["message"] ==
        "the trainer's Job is being created; it is tried again and again, and the last time failed calling webhook "
        "\"a.example\": deadline exceeded");
}

TEST_CASE("of two leaders the one that is behind does not write its status over the other's") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  harness.outdated = harness.cluster.get(kube::kTrainingJobs, "vision");

  json& job = harness.cluster.at(kube::kTrainingJobs, "vision");
  job["metadata"].update({{"resourceVersion", "9"}, {"generation", 2}});
  job["status"]["observedGeneration"] = 2;
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  harness.clock.advance(std::chrono::seconds(1));
  const auto behind = harness.jobs.reconcile(kVision, {});
  REQUIRE_FALSE(behind.ok());
  CHECK(behind.error().code() == ErrorCode::kConflict);
  CHECK(job["status"]["observedGeneration"] == 2);
  harness.outdated = nullptr;
  CHECK(harness.jobs.reconcile(kVision, {}).ok());
}

TEST_CASE("a job whose pod template is none is refused by the field's name, and looked at again") {
  Harness harness;
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["containers"][0]["volumeMounts"] = {"data"};
  harness.cluster.put(kube::kTrainingJobs, job);
  const auto again = harness.jobs.reconcile(kVision, {});
  REQUIRE(again.ok());
  CHECK(*again == std::chrono::minutes(1));
  CHECK(ready_reason(harness) == "SpecRefused");
  CHECK(harness.events == std::vector<std::string>{"SpecRefused"});
}

TEST_CASE("a refused job whose status the API server cannot write says why by an event") {
  Harness harness;
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["volumes"] = {{"a", json::object()}};
  harness.cluster.put(kube::kTrainingJobs, job);
  harness.fail = [](const kube::Action& action) -> Result<void> {
    if (action.verb == kube::Verb::kApplyStatus) return internal_error("failed to create typed live object");
    return {};
  };
  CHECK_FALSE(harness.jobs.reconcile(kVision, {}).ok());  // and is tried again
  CHECK(harness.events == std::vector<std::string>{"SpecRefused"});
}

}  // namespace
}  // namespace sluice::act
