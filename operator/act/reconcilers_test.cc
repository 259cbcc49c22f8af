// The impure shells around the steps, against the in-memory cluster.
#include "operator/act/reconcilers.h"

#include <nlohmann/json.hpp>

#include "operator/observe/fields.h"
#include "operator/testing/fake_cluster.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::act {
namespace {

using control::testing::FakeCluster;
using control::testing::owner_reference;
using control::testing::pool;
using control::testing::training_job;
using nlohmann::json;
using observe::field;
using observe::text_field;

const kube::ObjectKey kVision{"default", "vision"};

struct Harness {
  FakeCluster cluster;
  sluice::testing::ManualClock clock;
  decide::DecisionBoard board;
  control::Config config = control::testing::test_config();
  std::string unseen;            // a kind that the informers do not show
  kube::ObjectPointer outdated;  // what they show of the TrainingJob; null: what there is
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  std::vector<std::string> events;
  std::function<Result<void>(const kube::Action&)> fail = [](const kube::Action&) { return Result<void>(); };
  std::chrono::seconds busy{0};
  TrainingJobReconciler jobs{seams(), config, board, clock};
  PoolReconciler pools{seams(), [this](const kube::ObjectKey&) { return pods(); }, board, clock};

  ClusterSeams seams() {
    return {
        .seen = [this](const kube::Resource& resource, const kube::ObjectKey& key) -> kube::ObjectPointer {
          if (resource == kube::kTrainingJobs && outdated) return outdated;
          return resource.kind == unseen ? nullptr : cluster.get(resource, key.name);
        },
        .read = [this](const kube::Resource& resource, const kube::ObjectKey& key, std::stop_token) -> Result<json> {
          reads.push_back(std::string(resource.kind));
          const auto object = cluster.get(resource, key.name);
          return object ? Result<json>(*object) : not_found(key.to_string());
        },
        .perform = [this](const kube::Action& action, std::stop_token) -> Result<void> {
          SLUICE_TRY_VOID(fail(action));
          writes.push_back(action.to_string());
          return cluster.perform(action);
        },
        .record = [this](kube::Event event) { events.push_back(event.reason); },
        .busy = [this] { return std::chrono::milliseconds(busy); }};
  }

  std::vector<kube::ObjectPointer> pods() const {
    std::vector<kube::ObjectPointer> result;
    for (const auto& [key, pod] : cluster.all(kube::kPods)) result.push_back(pod);
    return result;
  }
};

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
                                                   "apply status of TrainingJob default/vision"});
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());  // the status now knows the Job
  harness.writes.clear();
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(harness.writes.empty());
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
  CHECK(harness.reads.size() == 2);  // absent, then present
  harness.clock.advance(std::chrono::minutes(6));
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(harness.reads.size() == 3);
}

TEST_CASE("the private key appears in the Secret only") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  const json all = harness.cluster.comparable();
  CHECK(all.dump().find("PRIVATE KEY") == std::string::npos);  // comparable() drops the Secret's data
  CHECK(text_field(*harness.cluster.get(kube::kSecrets, "vision-sluice-tls"), "/stringData/tls.key")
            .find("PRIVATE KEY") != std::string::npos);
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
  CHECK(*harness.jobs.reconcile(kVision, {}) == std::chrono::minutes(1));
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

TEST_CASE("a job that is gone needs nothing") {
  Harness harness;
  CHECK(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.writes.empty());
}

TEST_CASE("a pool's workers are made once, also when the pods cannot be seen yet") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(2));
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.cluster.all(kube::kPods).size() == 2);
  CHECK(std::count_if(harness.writes.begin(), harness.writes.end(),
                      [](const std::string& write) { return write.starts_with("create"); }) == 2);
}

TEST_CASE("a worker that could not be made is made at the next try") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(2));
  int tries = 0;
  harness.fail = [&](const kube::Action& action) -> Result<void> {
    if (action.resource == kube::kPods && ++tries == 2) return unavailable("away");
    return {};
  };
  CHECK_FALSE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.cluster.all(kube::kPods).size() == 1);
  CHECK(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.cluster.all(kube::kPods).size() == 2);
}

TEST_CASE("the plan's victims go first, while the plan's number is in force") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(3));
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  decide::JobDecision decision;
  decision.plan.workers = 2;
  decision.plan.victims = {"vision-worker-0"};
  decide::Round round;
  round.jobs[kVision] = std::make_shared<const decide::JobDecision>(decision);
  harness.board.publish(std::move(round));
  harness.cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = 2;
  harness.writes.clear();
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.writes.at(0) == "delete Pod default/vision-worker-0");
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

TEST_CASE("a worker's end is told at once, the pool's status later") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(1));
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  json& pod = harness.cluster.at(kube::kPods, "vision-worker-0");
  pod["status"] = {{"phase", "Running"}, {"conditions", {control::testing::condition("Ready", "True")}}};
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  pod["status"]["phase"] = "Failed";
  harness.clock.advance(std::chrono::seconds(60));
  CHECK(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.events == std::vector<std::string>{"WorkerEnded"});
}

TEST_CASE("workers that the API server refuses are told of, and the status stays true") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(2));
  harness.fail = [](const kube::Action& action) -> Result<void> {
    if (action.resource == kube::kPods) return Error(ErrorCode::kPermissionDenied, "violates PodSecurity");
    return {};
  };
  CHECK_FALSE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.events == std::vector<std::string>{"WorkerRefused"});
  harness.clock.advance(std::chrono::seconds(11));
  CHECK_FALSE(harness.pools.reconcile(kVision, {}).ok());
  const auto seen = harness.cluster.get(kube::kDataWorkerPools, "vision");
  CHECK(field(*seen, "/status/conditions").at(0).at("message") == "0 of 2 workers are ready");
}

TEST_CASE("the pause before a worker is replaced does not depend on the wall clock") {
  for (const auto jump : {std::chrono::hours(1), -std::chrono::hours(1)}) {
    INFO(jump.count());
    Harness harness;
    harness.cluster.put(kube::kDataWorkerPools, pool(1));
    REQUIRE(harness.pools.reconcile(kVision, {}).ok());
    harness.cluster.at(kube::kPods, "vision-worker-0")["status"]["phase"] = "Failed";
    REQUIRE(harness.pools.reconcile(kVision, {}).ok());
    harness.cluster.finish_deletions();
    harness.clock.jump_wall(jump);
    REQUIRE(harness.pools.reconcile(kVision, {}).ok());
    CHECK(harness.cluster.all(kube::kPods).empty());
    harness.clock.advance(std::chrono::seconds(6));
    REQUIRE(harness.pools.reconcile(kVision, {}).ok());
    CHECK(harness.cluster.all(kube::kPods).size() == 1);
  }
}

}  // namespace
}  // namespace sluice::act
