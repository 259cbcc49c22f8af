#include "operator/observe/snapshot_builder.h"

#include <nlohmann/json.hpp>

#include "operator/observe/training_job_view.h"
#include "operator/observe/worker_pod_index.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using control::testing::condition;
using control::testing::owner_reference;
using control::testing::pool;
using control::testing::shared;
using control::testing::training_job;
using nlohmann::json;

constexpr double kNow = 1'767'225'600;  // 2026-01-01T00:00:00Z

void put(kube::Store::Objects& objects, json object) {
  const kube::ObjectKey key = kube::key_of(object);
  objects[key] = shared(std::move(object));
}

json node(const std::string& name, const std::string& cpu) {
  return {{"metadata", {{"name", name}}},
          {"status", {{"allocatable", {{"cpu", cpu}}}, {"conditions", {condition("Ready", "True")}}}}};
}

json pod(const std::string& name, const std::string& node, const std::string& cpu) {
  json object = {{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "uid-" + name}}},
                 {"spec", {{"containers", {{{"resources", {{"requests", {{"cpu", cpu}}}}}}}}}},
                 {"status", {{"phase", "Running"}}}};
  if (!node.empty()) object["spec"]["nodeName"] = node;
  return object;
}

json worker(const std::string& name, const std::string& node, const std::string& pool_uid = "uid-pool") {
  json object = pod(name, node, "500m");
  object["metadata"]["labels"] = {{"sluice.dev/job", "vision"}, {"sluice.dev/component", "worker"}};
  object["metadata"]["ownerReferences"] = {owner_reference("DataWorkerPool", "vision", pool_uid)};
  object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
  object["status"]["conditions"] = {condition("Ready", "True", "2026-01-01T00:00:07Z")};
  return object;
}

json trainer_job(int ready) {
  return {{"metadata",
           {{"name", "vision"},
            {"namespace", "default"},
            {"annotations", {{"sluice.dev/feeder", "true"}}},
            {"ownerReferences", {owner_reference("TrainingJob", "vision", "uid-vision")}}}},
          {"status", {{"ready", ready}}}};
}

// A running job with two workers on a node of four cores, beside a pod of somebody else's.
ClusterObjects cluster() {
  ClusterObjects objects;
  put(objects.training_jobs, training_job());
  put(objects.jobs, trainer_job(1));
  put(objects.pools, pool(2));
  put(objects.nodes, node("n1", "4"));
  put(objects.pods, worker("vision-worker-0", "n1"));
  put(objects.pods, worker("vision-worker-1", "n1"));
  put(objects.pods, pod("other", "n1", "700m"));
  return objects;
}

scheduler::ClusterSnapshot build(const ClusterObjects& objects) {
  return SnapshotBuilder().build(objects, {{}, "no metrics"}, {}, 100, kNow + 60);
}

TEST_CASE("a running job is seen with its spec, its allocation and its workers") {
  const auto snapshot = build(cluster());
  CHECK(snapshot.taken_at_seconds == kNow + 60);
  REQUIRE(snapshot.jobs.size() == 1);
  const scheduler::Job& job = snapshot.jobs[0];
  CHECK(job.id == scheduler::JobId{"default", "vision"});
  CHECK(job.running);
  CHECK(job.gpus == 1);
  CHECK(job.ranks == 1);
  CHECK(job.max_workers == 8);
  CHECK(job.worker_millicores == 500);
  CHECK(scheduler::local_limit_millicores(job) == 500);
  CHECK_FALSE(job.local_adjustable);
  CHECK(job.allocated_workers == 2);
  REQUIRE(job.workers.size() == 2);
  CHECK(job.workers[0].name == "vision-worker-0");
  CHECK(job.workers[0].node == "n1");
  CHECK(job.workers[0].ready);
  CHECK(job.workers[0].created_at_seconds == kNow);
  CHECK(job.workers[0].ready_since_seconds == kNow + 7);
  CHECK_FALSE(job.workers[0].draining);
  CHECK(job.observation.missing_reason == "no metrics");
}

TEST_CASE("a node's room is what everybody but known workers leaves") {
  const auto snapshot = build(cluster());
  REQUIRE(snapshot.nodes.size() == 1);
  CHECK(snapshot.nodes[0].allocatable_millicores == 4000);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 700);
}

TEST_CASE("workers of a pool that is gone are in the way until they have left") {
  ClusterObjects objects = cluster();
  put(objects.pods, worker("vision-worker-9", "n1", "uid-of-an-old-pool"));
  const auto snapshot = build(objects);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 700 + 500);
  CHECK(snapshot.jobs[0].workers.size() == 2);
}

TEST_CASE("a draining worker is marked, a failed one is gone") {
  ClusterObjects objects = cluster();
  json draining = worker("vision-worker-0", "n1");
  draining["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z";
  put(objects.pods, draining);
  json failed = worker("vision-worker-1", "n1");
  failed["status"]["phase"] = "Failed";
  put(objects.pods, failed);
  const auto snapshot = build(objects);
  REQUIRE(snapshot.jobs[0].workers.size() == 1);
  CHECK(snapshot.jobs[0].workers[0].draining);
}

TEST_CASE("when a job counts as running") {
  ClusterObjects objects = cluster();
  SECTION("not before its trainer is ready") {
    put(objects.jobs, trainer_job(0));
    CHECK_FALSE(build(objects).jobs[0].running);
  }
  SECTION("still while its trainer is being restarted, if it has workers to lose") {
    json job = trainer_job(0);
    job["status"]["active"] = 1;
    put(objects.jobs, job);
    CHECK(build(objects).jobs[0].running);
    put(objects.pools, pool(0));
    CHECK_FALSE(build(objects).jobs[0].running);
  }
  SECTION("not while suspended") {
    json job = training_job();
    job["spec"]["suspend"] = true;
    put(objects.training_jobs, job);
    CHECK_FALSE(build(objects).jobs[0].running);
  }
  SECTION("not after its trainer has finished, though the status lags") {
    json job = trainer_job(1);
    job["status"]["conditions"] = {condition("Complete", "True")};
    put(objects.jobs, job);
    CHECK_FALSE(build(objects).jobs[0].running);
  }
  SECTION("not with a namesake's trainer") {
    json job = trainer_job(1);
    job["metadata"]["ownerReferences"][0]["uid"] = "uid-old";
    put(objects.jobs, job);
    CHECK_FALSE(build(objects).jobs[0].running);
  }
}

TEST_CASE("jobs that are over, leaving or unreadable are not the scheduler's business") {
  ClusterObjects objects = cluster();
  json job = training_job();
  SECTION("finished") { job["status"]["conditions"] = {condition("Succeeded", "True")}; }
  SECTION("being deleted") { job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"; }
  SECTION("unreadable") { job["spec"]["dataWorkers"]["resources"]["requests"]["cpu"] = "lots"; }
  put(objects.training_jobs, job);
  CHECK(build(objects).jobs.empty());
}

TEST_CASE("a trainer that was started without a feeder is left alone whatever the mode is now") {
  ClusterObjects objects = cluster();
  json job = trainer_job(1);
  job["metadata"]["annotations"]["sluice.dev/feeder"] = "false";
  put(objects.jobs, job);
  CHECK(build(objects).jobs[0].mode == scheduler::Mode::kOff);
}

TEST_CASE("memory is handed back by the job's uid, not its name") {
  const scheduler::EstimatorMemory memory{.demand_samples_per_second = 5};
  const ClusterObjects objects = cluster();
  CHECK(SnapshotBuilder().build(objects, {}, {{"uid-vision", memory}}, 100, kNow).jobs[0].memory == memory);
  CHECK_FALSE(SnapshotBuilder().build(objects, {}, {{"uid-other", memory}}, 100, kNow).jobs[0].memory.has_value());
}

TEST_CASE("nodes that take no data workers") {
  ClusterObjects objects = cluster();
  json changed = node("n1", "4");
  SECTION("cordoned") { changed["spec"]["unschedulable"] = true; }
  SECTION("tainted") { changed["spec"]["taints"] = {{{"key", "k"}, {"effect", "NoSchedule"}}}; }
  SECTION("not ready") { changed["status"]["conditions"] = {condition("Ready", "False")}; }
  put(objects.nodes, changed);
  CHECK_FALSE(build(objects).nodes[0].schedulable);
}

TEST_CASE("a soft taint keeps nobody away") {
  ClusterObjects objects = cluster();
  json changed = node("n1", "4");
  changed["spec"]["taints"] = {{{"key", "k"}, {"effect", "PreferNoSchedule"}}};
  put(objects.nodes, changed);
  CHECK(build(objects).nodes[0].schedulable);
}

TEST_CASE("a trainer that waits for a node has its room kept free, if any node could hold it") {
  ClusterObjects objects = cluster();
  put(objects.nodes, node("n2", "2"));
  json waiting = pod("speech-0", "", "3");
  waiting["metadata"]["labels"] = {{"sluice.dev/component", "trainer"}};
  SECTION("it fits where the workers would give way") {
    put(objects.pods, waiting);
    const auto nodes = build(objects).nodes;
    CHECK(nodes[0].requested_by_others_millicores == 700 + 3000);
    CHECK(nodes[1].requested_by_others_millicores == 0);
  }
  SECTION("it fits nowhere: nobody gives way in vain") {
    waiting["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "30";
    put(objects.pods, waiting);
    CHECK(build(objects).nodes[0].requested_by_others_millicores == 700);
  }
  SECTION("somebody else's pod is not ours to make room for") {
    put(objects.pods, pod("stranger", "", "3"));
    CHECK(build(objects).nodes[0].requested_by_others_millicores == 700);
  }
}

TEST_CASE("workers may be kept to a share of each node") {
  const auto snapshot = SnapshotBuilder().build(cluster(), {}, {}, 50, kNow);
  CHECK(snapshot.nodes[0].allocatable_millicores == 700 + 2000);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 700);
}

// The nodes' room and the jobs' workers.
std::string gist(const scheduler::ClusterSnapshot& snapshot) {
  std::string text;
  for (const scheduler::Node& node : snapshot.nodes)
    text += node.name + "-" + std::to_string(node.requested_by_others_millicores) + " ";
  for (const scheduler::Job& job : snapshot.jobs)
    for (const scheduler::Worker& worker : job.workers) text += worker.name + (worker.draining ? " draining " : " ");
  return text;
}

TEST_CASE("a builder that has seen the cluster before sees what has changed") {
  SnapshotBuilder builder;
  ClusterObjects objects = cluster();
  const auto again = [&] { return builder.build(objects, {}, {}, 100, kNow); };
  CHECK(gist(again()) == "n1-700 vision-worker-0 vision-worker-1 ");
  SECTION("a pod that changed") {
    put(objects.pods, pod("other", "n1", "900m"));
    CHECK(gist(again()) == "n1-900 vision-worker-0 vision-worker-1 ");
  }
  SECTION("pods that came and one that went, before and behind the others") {
    put(objects.pods, pod("a-first", "n1", "100m"));
    put(objects.pods, worker("vision-worker-2", "n1"));
    objects.pods.erase({"default", "vision-worker-0"});
    CHECK(gist(again()) == "n1-800 vision-worker-1 vision-worker-2 ");
  }
  SECTION("no pod that is left") {
    objects.pods.clear();
    CHECK(gist(again()) == "n1-0 ");
  }
  SECTION("a job that is over") {
    json job = training_job();
    job["status"]["conditions"] = {condition("Succeeded", "True")};
    put(objects.training_jobs, job);
    CHECK(gist(again()) == "n1-1700 ");
  }
}

TEST_CASE("the index follows worker pods as they come, change and go") {
  WorkerPodIndex index;
  const kube::ObjectKey job{"default", "vision"};
  const auto first = shared(worker("vision-worker-0", "n1"));
  const auto other = shared(pod("other", "n1", "1"));
  CHECK(index.apply({"default", "vision-worker-0"}, nullptr, first) == job);
  CHECK(index.apply({"default", "other"}, nullptr, other).name.empty());
  CHECK(index.workers_of(job).size() == 1);
  json relabelled = *first;
  relabelled["metadata"]["labels"]["sluice.dev/job"] = "speech";
  index.apply({"default", "vision-worker-0"}, first, shared(relabelled));
  CHECK(index.workers_of(job).empty());
  CHECK(index.workers_of({"default", "speech"}).size() == 1);
  CHECK(index.apply({"default", "vision-worker-0"}, shared(relabelled), nullptr).name == "speech");
  CHECK(index.workers_of({"default", "speech"}).empty());
}

TEST_CASE("a job whose fields cannot be read is refused by name") {
  json job = training_job();
  SECTION("mode") { job["spec"]["mode"] = "Sometimes"; }
  SECTION("placement") { job["spec"]["dataWorkers"]["placement"] = "Moon"; }
  SECTION("no CPU request") { job["spec"]["dataWorkers"]["resources"] = json::object(); }
  const auto view = view_training_job(job);
  REQUIRE_FALSE(view.ok());
  CHECK_THAT(view.error().message(), Catch::Contains("default/vision spec."));
}

}  // namespace
}  // namespace sluice::observe
