#include "operator/act/training_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/act/status.h"
#include "operator/api/conditions.h"
#include "operator/api/fields.h"
#include "operator/api/names.h"
#include "operator/api/network_policy.h"
#include "operator/testing/fake_cluster.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::field;
using api::text_field;
using control::testing::condition;
using control::testing::FakeCluster;
using control::testing::test_config;
using control::testing::training_job;
using nlohmann::json;

TrainingJobWorld see(const FakeCluster& cluster) {
  return {.training_job = cluster.get(kube::kTrainingJobs, "vision"),
          .job = cluster.get(kube::kJobs, "vision"),
          .service = cluster.get(kube::kServices, "vision-workers"),
          .secret = cluster.get(kube::kSecrets, "vision-sluice-tls"),
          .pool = cluster.get(kube::kDataWorkerPools, "vision"),
          .network_policy = cluster.get(api::kNetworkPolicies, "vision-workers")};
}

Result<std::vector<kube::Action>> step(const TrainingJobWorld& world) {
  return reconcile_children(world, test_config(),
                            [](const std::string& job) { return make_tls_identity(job, api::kTlsServerName, {}); });
}

Result<std::vector<kube::Action>> step(const FakeCluster& cluster) { return step(see(cluster)); }

FakeCluster cluster_with(const json& job) {
  FakeCluster cluster;
  cluster.put(kube::kTrainingJobs, job);
  return cluster;
}

std::vector<std::string> names(const std::vector<kube::Action>& actions) {
  std::vector<std::string> result;
  for (const kube::Action& action : actions) result.push_back(action.to_string());
  return result;
}

// Runs the step until it has nothing to do; of each run only the first `writes` actions happen, then it "crashes".
void settle(FakeCluster& cluster, std::size_t writes = 100) {
  for (int round = 0; round < 20; ++round) {
    const auto actions = step(cluster);
    REQUIRE(actions.ok());
    if (actions->empty()) return;
    for (std::size_t i = 0; i < actions->size() && i < writes; ++i) REQUIRE(cluster.perform((*actions)[i]).ok());
  }
  FAIL("the step does not come to rest");
}

TEST_CASE("what is taken out of the spec is taken out of the pool") {
  FakeCluster cluster = cluster_with(training_job());
  json& resources = cluster.at(kube::kTrainingJobs, "vision")["spec"]["dataWorkers"]["resources"];
  resources["limits"] = {{"cpu", "2"}};
  settle(cluster);
  resources.erase("limits");
  const auto actions = step(cluster);
  REQUIRE(actions.ok());
  REQUIRE(actions->size() == 1);
  CHECK(actions->front().to_string() == "apply DataWorkerPool default/vision");
  const json& container = api::list_field(actions->front().body, "/spec/template/spec/containers").at(0);
  CHECK_FALSE(field(container, "/resources/requests").is_null());
  CHECK(field(container, "/resources/limits").is_null());
}

TEST_CASE("a new job's children are made in an order that never leaves a pod waiting for what it mounts") {
  const auto actions = step(cluster_with(training_job()));
  REQUIRE(actions.ok());
  CHECK(names(*actions) == std::vector<std::string>{"create Secret default/vision-sluice-tls",
                                                    "create Service default/vision-workers",
                                                    "apply DataWorkerPool default/vision", "create Job default/vision",
                                                    "create NetworkPolicy default/vision-workers"});
  for (const kube::Action& action : *actions) {
    INFO(action.to_string());
    CHECK(action.field_manager == "sluice-operator");
    CHECK(text_field(action.body["metadata"]["ownerReferences"][0], "/uid") == "uid-vision");
    CHECK(field(action.body["metadata"]["ownerReferences"][0], "/controller") == true);
    CHECK(text_field(action.body, "/metadata/labels/sluice.dev~1job") == "vision");
  }
}

TEST_CASE("the pool is written without a number of workers, which the scheduler owns") {
  const auto actions = step(cluster_with(training_job()));
  REQUIRE(actions.ok());
  CHECK(field(actions->at(2).body, "/spec/replicas").is_null());
  CHECK(text_field(actions->at(2).body, "/spec/jobName") == "vision");
}

TEST_CASE("a second run finds nothing to do") {
  FakeCluster cluster = cluster_with(training_job());
  settle(cluster);
  const auto again = step(cluster);
  REQUIRE(again.ok());
  CHECK(names(*again).empty());
}

TEST_CASE("a crash after any write ends in the same state") {
  FakeCluster undisturbed = cluster_with(training_job());
  settle(undisturbed);
  const std::size_t writes = GENERATE(1, 2, 3, 4, 5);
  FakeCluster crashed = cluster_with(training_job());
  settle(crashed, writes);
  CHECK(crashed.comparable() == undisturbed.comparable());
}

TEST_CASE("two leaders that act on the same view end in the same state") {
  FakeCluster undisturbed = cluster_with(training_job());
  settle(undisturbed);
  FakeCluster cluster = cluster_with(training_job());
  const auto first = step(cluster);
  const auto second = step(cluster);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  for (std::size_t i = 0; i < first->size(); ++i) {
    REQUIRE(cluster.perform((*first)[i]).ok());
    const auto late = cluster.perform((*second)[i]);
    if (!late.ok()) CHECK(late.error().code() == ErrorCode::kAlreadyExists);
  }
  settle(cluster);
  CHECK(cluster.comparable() == undisturbed.comparable());
}

TEST_CASE("a child of a namesake is waited for, not taken over") {
  FakeCluster cluster = cluster_with(training_job());
  settle(cluster);
  json recreated = training_job();
  recreated["metadata"]["uid"] = "uid-vision-again";
  cluster.put(kube::kTrainingJobs, recreated);
  const auto actions = step(cluster);
  REQUIRE_FALSE(actions.ok());
  CHECK(actions.error().code() == ErrorCode::kAlreadyExists);
  CHECK_THAT(actions.error().message(), Catch::Contains("belongs to an earlier TrainingJob of this name"));
}

TEST_CASE("no second trainer starts beside a pod that a deleted Job has left") {
  struct Case {
    const char* situation;
    const char* pod;  // what differs
    bool want_job;
  };
  const Case test =
      GENERATE(Case{"it runs", "{}", false}, Case{"it has ended", R"({"status": {"phase": "Failed"}})", true},
               Case{"it is on its way out", R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})", true});
  CAPTURE(test.situation);
  json pod = {{"metadata", {{"name", "vision-0-x7f2q"}, {"namespace", "default"}}}, {"status", {{"phase", "Running"}}}};
  pod.merge_patch(json::parse(test.pod));
  TrainingJobWorld world;
  world.training_job = control::testing::shared(training_job());
  world.trainer_pods = {control::testing::shared(pod)};
  const auto actions = step(world);
  REQUIRE(actions.ok());
  CHECK(std::any_of(actions->begin(), actions->end(),
                    [](const kube::Action& action) { return action.resource == kube::kJobs; }) == test.want_job);
  const StatusStep told = reconcile_status(world, nullptr, nullptr, "2026-01-01T00:00:00Z");
  const auto ready = api::find_condition(told.action->body["status"]["conditions"], "Ready");
  CHECK((ready.message.find("vision-0-x7f2q") == std::string::npos) == test.want_job);
}

TEST_CASE("a drifted child is put right") {
  FakeCluster cluster = cluster_with(training_job());
  settle(cluster);
  cluster.at(kube::kServices, "vision-workers")["spec"]["ports"][0]["port"] = 1;
  const auto actions = step(cluster);
  REQUIRE(actions.ok());
  CHECK(names(*actions) == std::vector<std::string>{"apply Service default/vision-workers"});
}

TEST_CASE("other worker resources reach the pool; the running Job is left alone") {
  FakeCluster cluster = cluster_with(training_job());
  settle(cluster);
  cluster.at(kube::kTrainingJobs, "vision")["spec"]["dataWorkers"]["resources"]["requests"]["cpu"] = "1";
  const auto actions = step(cluster);
  REQUIRE(actions.ok());
  CHECK(names(*actions) == std::vector<std::string>{"apply DataWorkerPool default/vision"});
}

TEST_CASE("suspending stops the trainer and takes its workers away; resuming starts it again") {
  FakeCluster cluster = cluster_with(training_job());
  settle(cluster);
  cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = 3;
  cluster.at(kube::kTrainingJobs, "vision")["spec"]["suspend"] = true;
  const auto actions = step(cluster);
  REQUIRE(actions.ok());
  REQUIRE(actions->size() == 2);
  CHECK(actions->at(0).field_manager == "sluice-scheduler");
  CHECK(actions->at(0).body.at("spec") == json{{"replicas", 0}});
  settle(cluster);
  CHECK(field(*cluster.get(kube::kJobs, "vision"), "/spec/suspend") == true);
  CHECK(field(*cluster.get(kube::kDataWorkerPools, "vision"), "/spec/replicas") == 0);

  cluster.at(kube::kTrainingJobs, "vision")["spec"]["suspend"] = false;
  settle(cluster);
  CHECK(field(*cluster.get(kube::kJobs, "vision"), "/spec/suspend") == false);
}

TEST_CASE("a queue that suspends the trainer's Job is left in peace until the TrainingJob asks for something else") {
  FakeCluster cluster = cluster_with(training_job());
  settle(cluster);
  cluster.at(kube::kJobs, "vision")["spec"]["suspend"] = true;  // by Kueue
  CHECK(names(*step(cluster)).empty());
  cluster.at(kube::kJobs, "vision")["spec"]["suspend"] = false;
  CHECK(names(*step(cluster)).empty());

  cluster.at(kube::kTrainingJobs, "vision")["spec"]["suspend"] = true;
  CHECK(names(*step(cluster)) == std::vector<std::string>{"patch Job default/vision"});
  settle(cluster);
  CHECK(names(*step(cluster)).empty());
}

TEST_CASE("the trainer's Job carries the TrainingJob's queue and priority class") {
  json job = training_job();
  job["metadata"]["labels"] = {
      {"kueue.x-k8s.io/queue-name", "gpus"}, {"kueue.x-k8s.io/priority-class", "high"}, {"team", "a"}};
  FakeCluster cluster = cluster_with(job);
  settle(cluster);
  const json labels = field(*cluster.get(kube::kJobs, "vision"), "/metadata/labels");
  CHECK(labels["kueue.x-k8s.io/queue-name"] == "gpus");
  CHECK(labels["kueue.x-k8s.io/priority-class"] == "high");
  CHECK_FALSE(labels.contains("team"));
}

TEST_CASE("workers leave when nothing may use them") {
  FakeCluster cluster = cluster_with(training_job());
  settle(cluster);
  cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = 3;
  json& job = cluster.at(kube::kTrainingJobs, "vision");
  SECTION("the trainer has succeeded") {
    cluster.at(kube::kJobs, "vision")["status"]["conditions"] = json::array({condition("Complete", "True")});
  }
  SECTION("the trainer has failed") {
    cluster.at(kube::kJobs, "vision")["status"]["conditions"] = json::array({condition("Failed", "True")});
  }
  SECTION("the mode was set to Off") { job["spec"]["mode"] = "Off"; }
  SECTION("the placement was set to Local") { job["spec"]["dataWorkers"]["placement"] = "Local"; }
  settle(cluster);
  CHECK(field(*cluster.get(kube::kDataWorkerPools, "vision"), "/spec/replicas") == 0);
}

TEST_CASE("the feeder has one thread where the batches are to be made by workers, and workers can have the data") {
  struct Case {
    const char* placement;
    const char* unshared_data;
    bool want_one_thread;
  };
  const Case test = GENERATE(Case{"Auto", "", false}, Case{"Remote", "", true}, Case{"Local", "", false},
                             Case{"Remote", "one node", false});
  INFO(test.placement << " " << test.unshared_data);
  json job = training_job();
  job["spec"]["dataWorkers"]["placement"] = test.placement;
  TrainingJobWorld world = see(cluster_with(job));
  world.unshared_data = test.unshared_data;
  const auto actions = step(world);
  REQUIRE(actions.ok());
  const auto made = std::find_if(actions->begin(), actions->end(),
                                 [](const kube::Action& action) { return action.resource == kube::kJobs; });
  REQUIRE(made != actions->end());
  CHECK((made->body.dump().find("--threads") != std::string::npos) == test.want_one_thread);
}

TEST_CASE("a job whose data one node holds has no workers, even where it asks for them") {
  FakeCluster cluster = cluster_with(training_job());
  settle(cluster);
  cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = 3;
  TrainingJobWorld world = see(cluster);
  CHECK(step(world)->empty());
  world.unshared_data = "one node";
  const auto actions = step(world);
  REQUIRE(actions.ok());
  REQUIRE(actions->size() == 1);
  CHECK(actions->front().body.at("spec") == json{{"replicas", 0}});
}

TEST_CASE("a finished job's trainer is never started again, even when its Job was cleaned away") {
  json job = training_job();
  job["status"]["conditions"] = json::array({condition("Succeeded", "True")});
  const auto actions = step(cluster_with(job));
  REQUIRE(actions.ok());
  CHECK(actions->empty());
}

TEST_CASE("mode Off from the start is a plain Job and nothing else") {
  json job = training_job();
  job["spec"]["mode"] = "Off";
  FakeCluster cluster = cluster_with(job);
  const auto actions = step(cluster);
  REQUIRE(actions.ok());
  CHECK(names(*actions) == std::vector<std::string>{"create Job default/vision"});
  settle(cluster);
  // Its pods have no feeder, so a later Auto has nothing to connect workers to.
  cluster.at(kube::kTrainingJobs, "vision")["spec"]["mode"] = "Auto";
  CHECK(step(cluster)->empty());
}

TEST_CASE("mode Off leaves a running job's NetworkPolicy, also while its Job is not seen") {
  FakeCluster cluster = cluster_with(training_job());
  settle(cluster);
  cluster.at(kube::kTrainingJobs, "vision")["spec"]["mode"] = "Off";
  for (const bool job_is_seen : {true, false}) {
    INFO("the Job is seen: " << job_is_seen);
    TrainingJobWorld world = see(cluster);
    if (!job_is_seen) world.job = nullptr;
    const auto actions = step(world);
    REQUIRE(actions.ok());
    CHECK_THAT(names(*actions), !Catch::VectorContains(std::string("delete NetworkPolicy default/vision-workers")));
  }
}

TEST_CASE("a job that is being deleted is left to the garbage collector") {
  json job = training_job();
  job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  const auto actions = step(cluster_with(job));
  REQUIRE(actions.ok());
  CHECK(actions->empty());
}

TEST_CASE("a Job has one pod per trainer replica, each with its index") {
  json job = training_job();
  job["spec"]["trainer"]["replicas"] = 3;
  const auto actions = step(cluster_with(job));
  REQUIRE(actions.ok());
  REQUIRE(actions->size() == 6);
  REQUIRE(actions->at(4).to_string() == "create Job default/vision");
  const json& spec = actions->at(4).body["spec"];
  CHECK(spec["completions"] == 3);
  CHECK(spec["parallelism"] == 3);
  CHECK(spec["completionMode"] == "Indexed");
}

}  // namespace
}  // namespace sluice::act
