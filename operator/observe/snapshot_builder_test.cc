#include "operator/observe/snapshot_builder.h"

#include <nlohmann/json.hpp>

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

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

TEST_CASE("jobs that are over, leaving or unreadable are not the scheduler's business") {
  ClusterObjects objects = cluster();
  json job = training_job();
  SECTION("finished") { job["status"]["conditions"] = json::array({condition("Succeeded", "True")}); }
  SECTION("being deleted") { job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"; }
  SECTION("unreadable") { job["spec"]["dataWorkers"]["resources"]["requests"]["cpu"] = "lots"; }
  put(objects.training_jobs, job);
  CHECK(build(objects).jobs.empty());
}

TEST_CASE("the scheduler knows where a spec wants its batches made") {
  ClusterObjects objects = cluster();
  CHECK(build(objects).jobs[0].placement == scheduler::Placement::kAuto);
  json job = training_job();
  job["spec"]["dataWorkers"]["placement"] = "Remote";
  put(objects.training_jobs, job);
  CHECK(build(objects).jobs[0].placement == scheduler::Placement::kRemote);
}

TEST_CASE("a trainer that was started without a feeder is left alone whatever the mode is now") {
  ClusterObjects objects = cluster();
  json job = trainer_job(1);
  job["metadata"]["annotations"]["sluice.dev/feeder"] = "false";
  put(objects.jobs, job);
  CHECK(build(objects).jobs[0].mode == scheduler::Mode::kOff);
}

TEST_CASE("the size of a sample is known where Prometheus knows it") {
  Observations observations;
  observations.bytes_per_sample[{"default", "vision"}] = 150'528;
  const ClusterObjects objects = cluster();
  CHECK(SnapshotBuilder().build(objects, observations, {}, {}, kNow).jobs[0].bytes_per_sample == 150'528);
  CHECK_FALSE(SnapshotBuilder().build(objects, {}, {}, {}, kNow).jobs[0].bytes_per_sample.has_value());
}

TEST_CASE("the end of a job is known where Prometheus knows what remains of it") {
  Observations observations;
  observations.remaining_samples[{"default", "vision"}] = 64'000;
  const ClusterObjects objects = cluster();
  CHECK(SnapshotBuilder().build(objects, observations, {}, {}, kNow).jobs[0].remaining_samples == 64'000);
  CHECK_FALSE(SnapshotBuilder().build(objects, {}, {}, {}, kNow).jobs[0].remaining_samples.has_value());
}

TEST_CASE("memory is handed back by the job's uid, not its name") {
  const scheduler::EstimatorMemory memory{.demand_samples_per_second = 5};
  const ClusterObjects objects = cluster();
  CHECK(SnapshotBuilder().build(objects, {}, {{"uid-vision", memory}}, {}, kNow).jobs[0].memory == memory);
  CHECK_FALSE(SnapshotBuilder().build(objects, {}, {{"uid-other", memory}}, {}, kNow).jobs[0].memory.has_value());
}

TEST_CASE("nodes that take no data workers") {
  ClusterObjects objects = cluster();
  json changed = node("n1", "4");
  SECTION("cordoned") { changed["spec"]["unschedulable"] = true; }
  SECTION("not ready") { changed["status"]["conditions"] = json::array({condition("Ready", "False")}); }
  put(objects.nodes, changed);
  CHECK_FALSE(build(objects).nodes[0].schedulable);
}

TEST_CASE("a soft taint keeps no worker away") {
  ClusterObjects objects = cluster();
  json changed = node("n1", "4");
  changed["spec"]["taints"] = {{{"key", "k"}, {"effect", "PreferNoSchedule"}}};
  put(objects.nodes, changed);
  const auto snapshot = build(objects);
  CHECK(takes_new_workers(snapshot.nodes[0], snapshot.jobs[0]));
}

TEST_CASE("a node takes the workers of the jobs whose pool's template allows it") {
  ClusterObjects objects = cluster();
  json tainted = node("n2", "4");
  tainted["spec"]["taints"] = json::array({{{"key", "team"}, {"value", "red"}, {"effect", "NoSchedule"}}});
  put(objects.nodes, tainted);
  json zoned = node("n3", "4");
  zoned["metadata"]["labels"] = {{"zone", "b"}};
  put(objects.nodes, zoned);
  const auto taken = [&] {
    const auto snapshot = build(objects);
    std::string names;
    for (const scheduler::Node& node : snapshot.nodes)
      if (takes_new_workers(node, snapshot.jobs[0])) names += node.name;
    return names;
  };
  CHECK(taken() == "n1n3");
  json changed = pool(2);
  json& spec = changed["spec"]["template"]["spec"];
  SECTION("a toleration") {
    spec["tolerations"] = json::array({{{"key", "team"}, {"value", "red"}}});
    put(objects.pools, changed);
    CHECK(taken() == "n1n2n3");
  }
  SECTION("a node selector") {
    spec["nodeSelector"] = {{"zone", "b"}};
    put(objects.pools, changed);
    CHECK(taken() == "n3");
  }
  SECTION("anti-affinity and topology spread of the workers are passed on") {
    CHECK(build(objects).jobs[0].spread.empty());
    changed["spec"]["template"]["metadata"]["labels"] = {{"role", "feeds"}};
    const json selector = {{"matchLabels", {{"role", "feeds"}}}};
    spec["topologySpreadConstraints"] = json::array({{{"topologyKey", "zone"}, {"maxSkew", 2}}});
    spec["topologySpreadConstraints"][0]["labelSelector"] = selector;
    put(objects.pools, changed);
    const auto snapshot = build(objects);
    REQUIRE(snapshot.jobs[0].spread.size() == 1);
    CHECK(snapshot.jobs[0].spread[0].most_ahead == 2);
    CHECK(snapshot.nodes[0].domains.size() == 1);
  }
  SECTION("before there is a pool, no rule is known but the taints") {
    objects.pools.clear();
    CHECK(taken() == "n1n3");
  }
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
  SECTION("only on a node that takes it") {
    json tainted = node("n1", "4");
    tainted["spec"]["taints"] = json::array({{{"key", "gpu"}, {"effect", "NoSchedule"}}});
    put(objects.nodes, tainted);
    put(objects.pods, waiting);
    CHECK(build(objects).nodes[0].requested_by_others_millicores == 700);
    waiting["spec"]["tolerations"] = json::array({{{"operator", "Exists"}}});
    put(objects.pods, waiting);
    CHECK(build(objects).nodes[0].requested_by_others_millicores == 700 + 3000);
  }
  SECTION("it fits nowhere: no worker gives way in vain") {
    waiting["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "30";
    put(objects.pods, waiting);
    CHECK(build(objects).nodes[0].requested_by_others_millicores == 700);
  }
  SECTION("a pod of no job gets none that kube-scheduler has not refused") {
    put(objects.pods, pod("stranger", "", "3"));
    CHECK(build(objects).nodes[0].requested_by_others_millicores == 700);
  }
}

TEST_CASE("a node's free memory is what everybody but known workers leaves; a worker's is its template's") {
  ClusterObjects objects = cluster();
  json with_memory = node("n1", "4");
  with_memory["status"]["allocatable"]["memory"] = "8Gi";
  put(objects.nodes, with_memory);
  json other = pod("other", "n1", "700m");
  other["spec"]["containers"][0]["resources"]["requests"]["memory"] = "2Gi";
  other["spec"]["initContainers"] = {{{"resources", {{"requests", {{"memory", "3Gi"}}}}}}};
  put(objects.pods, other);
  json own = worker("vision-worker-0", "n1");
  own["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi";
  put(objects.pods, own);
  const auto snapshot = build(objects);
  CHECK(snapshot.nodes[0].free_memory_bytes == std::int64_t{5} << 30);
  CHECK(snapshot.jobs[0].worker_memory_bytes == std::int64_t{256} << 20);
  put(objects.nodes, node("n1", "4"));
  CHECK_FALSE(build(objects).nodes[0].free_memory_bytes.has_value());
}

TEST_CASE("prices, links, spot and the budget reach the snapshot") {
  ClusterObjects objects = cluster();
  json cheap = node("n1", "4");
  cheap["metadata"]["labels"] = {{"karpenter.sh/capacity-type", "spot"},
                                 {"node.kubernetes.io/instance-type", "m5.large"}};
  put(objects.nodes, cheap);
  Circumstances circumstances;
  circumstances.nodes = {.prices = {{"m5.large", 0.096}}, .network_gigabits = 8};
  circumstances.budgets = {2.5, {{"default", 0.5}}};
  const auto snapshot = SnapshotBuilder().build(objects, {}, {}, circumstances, kNow);
  CHECK(snapshot.nodes[0].price_per_hour == 0.096);
  CHECK(snapshot.nodes[0].network_bytes_per_second == 1e9);
  CHECK(snapshot.nodes[0].spot);
  CHECK(snapshot.budget_per_hour == 2.5);
  REQUIRE(snapshot.quotas.size() == 1);
  CHECK(snapshot.quotas[0].budget_per_hour == 0.5);
  CHECK(snapshot.jobs[0].quota == snapshot.quotas[0].name);
}

TEST_CASE("caps of a job's namespace bound what counts, and of no other namespace") {
  const ClusterObjects objects = cluster();
  const auto build_with = [&](const std::string& name_space, const control::NamespaceCaps& caps) {
    Circumstances circumstances;
    circumstances.namespace_caps[name_space] = caps;
    SnapshotBuilder builder;
    const auto snapshot = builder.build(objects, {}, {}, circumstances, kNow);
    return std::pair(snapshot, builder.capped());
  };
  const scheduler::Job uncapped = build(objects).jobs.at(0);
  const control::NamespaceCaps caps{.priority = uncapped.priority - 3, .weight = 1, .worker_cores = 1.5};
  const auto own = build_with("default", caps);
  CHECK(own.first.jobs[0].priority == uncapped.priority - 3);
  CHECK(own.first.jobs[0].weight == 1);
  REQUIRE(own.first.quotas.size() == 1);
  CHECK(own.first.quotas[0].worker_millicores == 1500);
  CHECK(own.first.jobs[0].quota == own.first.quotas[0].name);
  CHECK(own.second.size() == 1);

  const auto other = build_with("team-b", caps);
  CHECK(other.first.jobs[0].priority == uncapped.priority);
  CHECK(other.first.jobs[0].weight == uncapped.weight);
  CHECK(other.first.quotas.empty());
  CHECK(other.second.empty());
}

TEST_CASE("the quota of a job's namespace bounds its workers") {
  ClusterObjects objects = cluster();
  put(objects.resource_quotas, {{"metadata", {{"name", "q"}, {"namespace", "default"}}},
                                {"status", {{"hard", {{"requests.cpu", "10"}}}, {"used", {{"requests.cpu", "8"}}}}}});
  const auto snapshot = build(objects);
  REQUIRE(snapshot.quotas.size() == 1);
  CHECK(snapshot.quotas[0].worker_millicores == 2000 + 2 * 500);
  CHECK(snapshot.jobs[0].quota == snapshot.quotas[0].name);
  CHECK(build(cluster()).jobs[0].quota.empty());
}

TEST_CASE("a worker asks for what its namespace's LimitRange puts in, on nodes and against quotas") {
  ClusterObjects objects = cluster();
  json job = training_job();
  json& resources = job["spec"]["dataWorkers"]["resources"];
  resources = {{"requests", {{"cpu", "500m"}}}};
  const auto limit_range = [&](const char* name_space) {
    put(objects.limit_ranges,
        {{"metadata", {{"name", "l"}, {"namespace", name_space}}},
         {"spec", {{"limits", json::array({{{"type", "Container"}, {"defaultRequest", {{"memory", "1Gi"}}}}})}}}});
  };
  put(objects.resource_quotas,
      {{"metadata", {{"name", "q"}, {"namespace", "default"}}}, {"status", {{"hard", {{"requests.memory", "4Gi"}}}}}});
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  SECTION("a default request") {
    limit_range("default");
    put(objects.training_jobs, job);
    const auto snapshot = build(objects);
    CHECK(snapshot.jobs[0].worker_memory_bytes == kGibibyte);
    REQUIRE(snapshot.quotas.size() == 1);
    CHECK(snapshot.quotas[0].worker_millicores == 2 * 500 + 4 * 500);
  }
  SECTION("another namespace's") {
    limit_range("another");
    limit_range("z");
    put(objects.training_jobs, job);
    CHECK(build(objects).jobs[0].worker_memory_bytes == 0);
  }
  SECTION("a written limit is the request, whatever the default") {
    limit_range("default");
    resources["limits"] = {{"memory", "2Gi"}};
    put(objects.training_jobs, job);
    CHECK(build(objects).jobs[0].worker_memory_bytes == 2 * kGibibyte);
  }
}

TEST_CASE("until it is measured, a job goes by what one like it ended with") {
  ClusterObjects objects = cluster();
  put(objects.pools, pool(0));
  Circumstances circumstances;
  circumstances.guess = [](const std::string& likeness) -> std::optional<Guess> {
    CHECK(likeness.size() == 16 + 1 + 16);
    return Guess{{.demand_samples_per_second = 5, .knee_cores = scheduler::Tracked::starting_at(4)}, 20};
  };
  EstimatorMemories memories;
  const auto job = [&] { return SnapshotBuilder().build(objects, {}, memories, circumstances, kNow).jobs[0]; };
  CHECK(job().memory->demand_samples_per_second == 5);
  CHECK(job().allocated_workers == 8);  // its maximum
  SECTION("not before it runs") {
    put(objects.jobs, trainer_job(0));
    CHECK(job().allocated_workers == 0);
    CHECK(job().memory.has_value());
  }
  SECTION("not once it has been measured") {
    memories["uid-vision"] = {.demand_samples_per_second = 7, .was_measured = true};
    CHECK(job().allocated_workers == 0);
    CHECK(job().memory->demand_samples_per_second == 7);
  }
  SECTION("not where the plan does not set the number") {
    json recommend = training_job();
    recommend["spec"]["mode"] = "Recommend";
    put(objects.training_jobs, recommend);
    CHECK(job().allocated_workers == 0);
  }
  SECTION("not beyond what is there already") {
    put(objects.pools, pool(2));
    CHECK(job().allocated_workers == 2);
  }
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
  const auto again = [&] { return builder.build(objects, {}, {}, {}, kNow); };
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
    job["status"]["conditions"] = json::array({condition("Succeeded", "True")});
    put(objects.training_jobs, job);
    CHECK(gist(again()) == "n1-1700 ");
  }
}

}  // namespace
}  // namespace sluice::observe
