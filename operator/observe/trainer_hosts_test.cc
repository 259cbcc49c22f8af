#include "operator/observe/trainer_hosts.h"

#include <nlohmann/json.hpp>

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

json trainer(const std::string& name, const std::string& node, const std::string& feeder_cpu = "250m") {
  json object = pod(name, node, "1");
  object["metadata"]["labels"] = {{"sluice.dev/job", "vision"}, {"sluice.dev/component", "trainer"}};
  object["metadata"]["ownerReferences"] = json::array({owner_reference("Job", "vision", "uid-job")});
  object["spec"]["initContainers"] = {
      {{"name", "sluice-feeder"},
       {"restartPolicy", "Always"},
       {"resources", {{"requests", {{"cpu", feeder_cpu}}}, {"limits", {{"cpu", "500m"}}}}}}};
  object["status"]["qosClass"] = "Burstable";
  return object;
}

// Two trainer pods of one GPU each on two nodes, with nothing else there but the workers.
ClusterObjects two_ranks() {
  ClusterObjects objects = cluster();
  json job = training_job();
  job["spec"]["trainer"]["replicas"] = 2;
  put(objects.training_jobs, job);
  json trainers = trainer_job(2);
  trainers["metadata"]["uid"] = "uid-job";
  put(objects.jobs, trainers);
  put(objects.nodes, node("n2", "8"));
  objects.nodes[{"", "n2"}] = shared([] {
    json gpus = node("n2", "8");
    gpus["status"]["allocatable"]["nvidia.com/gpu"] = "4";
    return gpus;
  }());
  objects.pods.erase({"default", "other"});
  put(objects.pods, trainer("vision-0", "n1"));
  put(objects.pods, trainer("vision-1", "n2"));
  return objects;
}

scheduler::ClusterSnapshot build_resizing(const ClusterObjects& objects, std::set<std::string> fixed = {}) {
  return SnapshotBuilder().build(objects, {}, {}, {.resizes_feeders = true, .fixed_feeders = std::move(fixed)}, kNow);
}

TEST_CASE("a job's hosts are the nodes of its trainer pods, with the feeders' CPU that is in force") {
  ClusterObjects objects = two_ranks();
  json grown = trainer("vision-1", "n2", "2");
  grown["status"]["initContainerStatuses"] = {
      {{"name", "sluice-feeder"}, {"resources", {{"requests", {{"cpu", "300m"}}}, {"limits", {{"cpu", "400m"}}}}}}};
  put(objects.pods, grown);
  const auto snapshot = build(objects);
  const scheduler::Job& job = snapshot.jobs[0];
  REQUIRE(job.hosts.size() == 2);
  CHECK(job.hosts[0].node == "n1");
  CHECK(job.hosts[0].ranks == 1);
  CHECK(job.hosts[0].gpus == 1);
  CHECK(job.hosts[0].request_millicores == 250);
  CHECK(job.hosts[0].limit_millicores == 500);
  CHECK(job.hosts[1].request_millicores == 300);
  CHECK(job.hosts[1].limit_millicores == 400);
  CHECK_FALSE(job.local_adjustable);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 1250);
  CHECK(snapshot.nodes[1].requested_by_others_millicores == 3000);  // what may still be granted is reserved
  CHECK(snapshot.nodes[1].gpus == 4);
}

TEST_CASE("a feeder whose CPU the plan sets is not counted among other pods") {
  SnapshotBuilder builder;
  const ClusterObjects objects = two_ranks();
  const auto snapshot = builder.build(objects, {}, {}, {.resizes_feeders = true}, kNow);
  CHECK(snapshot.jobs[0].local_adjustable);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 1000);
  const auto& feeders = builder.planned_feeders().at({"default", "vision"});
  REQUIRE(feeders.size() == 2);
  CHECK(feeders[1].key.name == "vision-1");
  CHECK(feeders[1].uid == "uid-vision-1");
  CHECK(feeders[1].job_uid == "uid-vision");
  CHECK(feeders[1].node == "n2");
  CHECK(feeders[1].feeder.wanted == api::FeederCpu{250, 500});
}

TEST_CASE("when the plan leaves the feeders' CPU as it is") {
  ClusterObjects objects = two_ranks();
  json job = *objects.training_jobs.begin()->second;
  std::set<std::string> fixed;
  SECTION("mode Recommend") { job["spec"]["mode"] = "Recommend"; }
  SECTION("Kueue admitted the trainer by its first requests") {
    job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team";
  }
  SECTION("the last resize failed") { fixed = {"uid-vision-1"}; }
  SECTION("a pod without any request or limit would change its class") {
    json plain = trainer("vision-1", "n2");
    plain["status"]["qosClass"] = "BestEffort";
    put(objects.pods, plain);
  }
  SECTION("a trainer pod is not there") { objects.pods.erase({"default", "vision-1"}); }
  SECTION("a trainer pod is leaving") {
    json leaving = trainer("vision-1", "n2");
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z";
    put(objects.pods, leaving);
  }
  put(objects.training_jobs, job);
  const auto snapshot = build_resizing(objects, fixed);
  CHECK_FALSE(snapshot.jobs[0].local_adjustable);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 1250);
}

TEST_CASE("a trainer that waits for a node finds room that feeders have grown into") {
  ClusterObjects objects = two_ranks();
  put(objects.pods, trainer("vision-1", "n2", "6"));
  json waiting = pod("speech-0", "", "5");
  waiting["metadata"]["labels"] = {{"sluice.dev/component", "trainer"}};
  put(objects.pods, waiting);
  CHECK(build(objects).nodes[1].requested_by_others_millicores == 7000);
  CHECK(build_resizing(objects).nodes[1].requested_by_others_millicores == 1000 + 5000);
}

TEST_CASE("a job whose trainer finds no node does not run: its own workers must make way") {
  ClusterObjects objects = two_ranks();
  json trainers = trainer_job(1);
  trainers["metadata"]["uid"] = "uid-job";
  trainers["status"]["active"] = 2;
  put(objects.jobs, trainers);
  REQUIRE(build(objects).jobs[0].running);
  json waiting = trainer("vision-1", "");
  waiting["status"]["conditions"] = json::array({condition("PodScheduled", "False")});
  put(objects.pods, waiting);
  CHECK(build(objects).jobs[0].running);  // kube-scheduler has only not come to it yet
  waiting["status"]["conditions"][0]["reason"] = "Unschedulable";
  put(objects.pods, waiting);
  CHECK_FALSE(build(objects).jobs[0].running);
}

}  // namespace
}  // namespace sluice::observe
