// The impure shell around a pool's step, against the in-memory cluster.
#include "operator/act/pool_reconciler.h"

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/pod.h"
#include "operator/testing/reconciler_harness.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::field;
using Harness = control::testing::ReconcilerHarness;
using control::testing::kVision;
using control::testing::pool;
using nlohmann::json;

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

TEST_CASE("a stranger's pod that is not seen as a worker costs the pool nothing but the name, and is told of") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(2));
  harness.cluster.put(kube::kPods, {{"metadata",
                                     {{"name", "vision-worker-0"},
                                      {"namespace", "default"},
                                      {"uid", "stranger"},
                                      {"labels", {{"sluice.dev/component", "trainer"}}}}}});
  // As the index of workers shows them: a trainer is none.
  PoolReconciler pools(
      harness.seams(),
      [&](const kube::ObjectKey&) {
        std::vector<kube::ObjectPointer> workers = harness.pods();
        std::erase_if(workers, [](const auto& pod) { return api::Pod(*pod).is_trainer(); });
        return workers;
      },
      harness.board, harness.clock);
  const auto first = pools.reconcile(kVision, {});
  REQUIRE(first.ok());
  REQUIRE(first->has_value());
  CHECK(**first == std::chrono::milliseconds(0));
  CHECK(harness.events == std::vector<std::string>{"WorkerNameTaken", "WorkerNameTaken"});
  REQUIRE(pools.reconcile(kVision, {}).ok());
  CHECK(harness.cluster.all(kube::kPods).size() == 3);
  CHECK(harness.cluster.get(kube::kPods, "vision-worker-2"));
  CHECK(api::Pod(*harness.cluster.get(kube::kPods, "vision-worker-0")).uid() == "stranger");
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

TEST_CASE("each new worker prefers the node that the plan has found for it, while the plan's number is in force") {
  struct Case {
    int replicas;
    std::vector<std::string> nodes;      // of a plan for three workers
    std::vector<std::string> preferred;  // by worker; empty: none
  };
  const json::json_pointer preference(
      "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/preference/matchFields/0/values/"
      "0");
  for (const auto& [replicas, nodes, preferred] :
       {Case{3, {"roomy", "cheap", "cheap"}, {"roomy", "cheap", "cheap"}}, Case{3, {"cheap"}, {"", "", "cheap"}},
        Case{3, {}, {"", "", ""}}, Case{2, {"roomy", "cheap", "cheap"}, {"", ""}}}) {
    Harness harness;
    decide::JobDecision decision;
    decision.plan.workers = 3;
    decision.plan.new_worker_nodes = nodes;
    decide::Round round;
    round.jobs[kVision] = std::make_shared<const decide::JobDecision>(decision);
    harness.board.publish(std::move(round));
    harness.cluster.put(kube::kDataWorkerPools, pool(replicas));
    REQUIRE(harness.pools.reconcile(kVision, {}).ok());
    std::vector<std::string> seen;
    for (const auto& [key, pod] : harness.cluster.all(kube::kPods)) seen.push_back(pod->value(preference, ""));
    CHECK(seen == preferred);
  }
}

TEST_CASE("no worker takes the place of one that could not be deleted") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(2));
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  json& changed = harness.cluster.at(kube::kDataWorkerPools, "vision");
  changed["spec"]["template"]["spec"]["containers"][0]["image"] = "another";
  harness.fail = [&](const kube::Action& action) -> Result<void> {
    if (action.verb == kube::Verb::kDelete && action.key.name == "vision-worker-1") return unavailable("away");
    return {};
  };
  harness.writes.clear();
  CHECK_FALSE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(std::count_if(harness.writes.begin(), harness.writes.end(),
                      [](const std::string& write) { return write.starts_with("create"); }) == 0);
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
  const auto again = harness.pools.reconcile(kVision, {});
  REQUIRE(again.ok());
  REQUIRE(again->has_value());
  CHECK(std::chrono::ceil<std::chrono::seconds>(**again) == std::chrono::seconds(61));
  CHECK(harness.events == std::vector<std::string>{"WorkerRefused"});
  const auto ready = [&] {
    return field(*harness.cluster.get(kube::kDataWorkerPools, "vision"), "/status/conditions").at(0);
  };
  CHECK(ready().at("reason") == "Forbidden");
  CHECK(ready().at("message") == "0 of 2 workers are ready: violates PodSecurity");
  harness.fail = [](const kube::Action&) { return Result<void>(); };
  harness.clock.advance(std::chrono::seconds(61));
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  harness.clock.advance(std::chrono::seconds(11));
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(ready().at("reason") == "Scaling");
}

TEST_CASE("a quota gives the workers that it has room for, and is asked for the others after growing pauses") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(5));
  std::size_t room = 3;
  int asked = 0;
  harness.fail = [&](const kube::Action& action) -> Result<void> {
    if (action.resource != kube::kPods) return {};
    ++asked;
    if (harness.cluster.all(kube::kPods).size() < room) return {};
    return Error(ErrorCode::kPermissionDenied, "exceeded quota: cpu");
  };
  const auto asked_after = [&](std::chrono::seconds pause) {
    harness.clock.advance(pause);
    asked = 0;
    REQUIRE(harness.pools.reconcile(kVision, {}).ok());
    return asked;
  };
  CHECK(asked_after(std::chrono::seconds(0)) == 5);
  CHECK(harness.cluster.all(kube::kPods).size() == 3);
  for (const auto& [key, pod] : harness.cluster.all(kube::kPods))
    harness.cluster.at(kube::kPods, key.name)["status"] = {
        {"phase", "Running"}, {"conditions", {control::testing::condition("Ready", "True")}}};
  // Events about the pods that there are do not make it ask.
  for (int i = 0; i < 5; ++i) CHECK(asked_after(std::chrono::seconds(11)) == 0);
  const auto ready = field(*harness.cluster.get(kube::kDataWorkerPools, "vision"), "/status/conditions").at(0);
  CHECK(ready.at("message") == "3 of 5 workers are ready: exceeded quota: cpu");
  CHECK(asked_after(std::chrono::seconds(6)) == 1);
  CHECK(asked_after(std::chrono::seconds(61)) == 0);
  CHECK(asked_after(std::chrono::seconds(60)) == 1);
  // A number that fits, and then one that does not, begins anew.
  harness.cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = 3;
  CHECK(asked_after(std::chrono::seconds(1)) == 0);
  room = 5;
  harness.cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = 5;
  CHECK(asked_after(std::chrono::seconds(1)) == 2);
  CHECK(harness.cluster.all(kube::kPods).size() == 5);
}

TEST_CASE("workers of a corrected template are asked for at once") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(1));
  harness.fail = [](const kube::Action& action) -> Result<void> {
    const bool corrected = action.body.dump().find("corrected") != std::string::npos;
    if (action.resource != kube::kPods || corrected) return {};
    return invalid_argument("spec.containers[0].image: Required value");
  };
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.cluster.all(kube::kPods).empty());
  harness.cluster.at(kube::kDataWorkerPools, "vision")["spec"]["template"]["spec"]["containers"][0]["image"] =
      "corrected";
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.cluster.all(kube::kPods).size() == 1);
}

TEST_CASE("a worker that is refused does not keep the others") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(6));
  harness.fail = [](const kube::Action& action) -> Result<void> {
    if (action.key.name != "vision-worker-1") return {};
    return Error(ErrorCode::kPermissionDenied, "a webhook does not like its name");
  };
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(harness.cluster.all(kube::kPods).size() == 5);
  CHECK(harness.events == std::vector<std::string>{"WorkerRefused"});
}

TEST_CASE("what is refused to all workers of a pool costs one request, however many there are to be") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(500));
  int asked = 0;
  harness.fail = [&](const kube::Action& action) -> Result<void> {
    if (action.resource != kube::kPods) return {};
    ++asked;
    return unavailable("away");
  };
  CHECK_FALSE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(asked == 1);
}

TEST_CASE("a webhook that does not answer for workers is named in the status, until they are there") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(1));
  bool answers = false;
  harness.fail = [&](const kube::Action& action) -> Result<void> {
    if (action.resource != kube::kPods || answers) return {};
    return internal_error("failed calling webhook \"mesh.example\": deadline exceeded");
  };
  const auto ready = [&] {
    return field(*harness.cluster.get(kube::kDataWorkerPools, "vision"), "/status/conditions").at(0);
  };
  CHECK_FALSE(harness.pools.reconcile(kVision, {}).ok());  // and is tried again
  CHECK(ready().at("reason") == "WebhookUnanswered");
  CHECK_THAT(ready().at("message").get<std::string>(), Catch::Contains("mesh.example"));
  answers = true;
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  harness.cluster.at(kube::kPods, "vision-worker-0")["status"] = {
      {"phase", "Running"}, {"conditions", {control::testing::condition("Ready", "True")}}};
  harness.clock.advance(std::chrono::seconds(11));
  REQUIRE(harness.pools.reconcile(kVision, {}).ok());
  CHECK(ready().at("reason") == "AllReady");
}

TEST_CASE("a pool's workers are made several at once") {
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(3));
  std::mutex mutex;
  std::condition_variable changed;
  int made = 0, most = 0, under_way = 0;
  ClusterSeams seams = harness.seams();
  seams.perform = [&](const kube::Action& action, std::stop_token) -> Result<void> {
    if (action.resource != kube::kPods) return {};
    std::unique_lock lock(mutex);
    most = std::max(most, ++under_way);
    changed.notify_all();
    // The first goes alone; the other two meet.
    if (made > 0) changed.wait_for(lock, std::chrono::seconds(60), [&] { return most == 2; });
    --under_way;
    ++made;
    return {};
  };
  PoolReconciler pools(
      seams, [](const kube::ObjectKey&) { return std::vector<kube::ObjectPointer>(); }, harness.board, harness.clock);
  pools.write_at_once(8);
  CHECK(pools.reconcile(kVision, {}).ok());
  CHECK(made == 3);
  CHECK(most == 2);
}

TEST_CASE("a pool that no TrainingJob controls is not obeyed, and says so once") {
  Harness harness;
  json stray = pool(3);
  SECTION("it has no owner") { stray["metadata"].erase("ownerReferences"); }
  SECTION("another kind owns it") { stray["metadata"]["ownerReferences"][0]["kind"] = "Deployment"; }
  SECTION("another job owns it") { stray["metadata"]["ownerReferences"][0]["name"] = "speech"; }
  SECTION("without labels in its template, too") {
    stray["metadata"].erase("ownerReferences");
    stray["spec"]["template"].erase("metadata");
  }
  harness.cluster.put(kube::kDataWorkerPools, stray);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(harness.pools.reconcile(kVision, {}).ok());
    harness.clock.advance(std::chrono::minutes(1));
  }
  CHECK(harness.writes == std::vector<std::string>{"apply status of DataWorkerPool default/vision"});
  const auto seen = harness.cluster.get(kube::kDataWorkerPools, "vision");
  CHECK(field(*seen, "/status/conditions").at(0).at("reason") == "NotControlled");
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
