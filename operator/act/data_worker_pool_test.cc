#include "operator/act/data_worker_pool.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/fields.h"
#include "operator/testing/fake_cluster.h"
#include "operator/testing/objects.h"
#include "operator/testing/pool_steps.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::field;
using api::text_field;
using namespace control::testing;
using nlohmann::json;

TEST_CASE("missing workers are made from the pool's template, with the lowest free ordinals") {
  FakeCluster cluster = cluster_with_pool(3);
  PoolMemory memory;
  const PoolStep step = run(cluster, memory);
  CHECK(writes_to_pods(step) == Writes{"create Pod default/vision-worker-0", "create Pod default/vision-worker-1",
                                       "create Pod default/vision-worker-2"});
  const json& pod = step.actions[0].body;
  CHECK(text_field(pod["metadata"]["ownerReferences"][0], "/uid") == "uid-pool");
  CHECK(text_field(pod, "/metadata/labels/sluice.dev~1component") == "worker");
  CHECK(text_field(pod, "/metadata/labels/sluice.dev~1template-hash").size() == 16);
  CHECK(text_field(pod, "/metadata/annotations/prometheus.io~1scrape") == "true");
  CHECK(pod["spec"] == pool(3)["spec"]["template"]["spec"]);
}

TEST_CASE("nothing is made twice while the cache has not seen the first one") {
  FakeCluster cluster = cluster_with_pool(3);
  const PoolWorld stale = see(cluster);
  PoolMemory memory = reconcile_pool(stale, {}).memory;
  const PoolStep again = reconcile_pool(stale, memory);
  CHECK(writes_to_pods(again).empty());
  CHECK(again.again_after.has_value());
}

TEST_CASE("a write that is never seen is tried again") {
  FakeCluster cluster = cluster_with_pool(1);
  const PoolMemory memory = reconcile_pool(see(cluster), {}).memory;
  CHECK(writes_to_pods(reconcile_pool(see(cluster, kNow + 29), memory)).empty());
  CHECK(writes_to_pods(reconcile_pool(see(cluster, kNow + 31), memory)).size() == 1);
}

TEST_CASE("a creation that is not seen for long is repeated before a lower name that has become free") {
  FakeCluster cluster = cluster_with_pool(2);
  cluster.put(kube::kPods, {{"metadata", {{"name", "vision-worker-0"}, {"namespace", "default"}, {"uid", "old"}}}});
  const PoolStep first = reconcile_pool(see(cluster), {});
  REQUIRE(writes_to_pods(first) == Writes{"create Pod default/vision-worker-1", "create Pod default/vision-worker-2"});
  PoolMemory memory = first.memory;

  // The leftover of the name 0 goes. The cache has not seen the two that were made, and time passes.
  FakeCluster stale = cluster_with_pool(2);
  const PoolStep again = reconcile_pool(see(stale, kNow + 31), memory);
  CHECK(writes_to_pods(again) == writes_to_pods(first));
  SECTION("also if the pool was smaller in between") {
    scale(stale, 0);
    memory = reconcile_pool(see(stale, kNow + 40), memory).memory;
    scale(stale, 1);
    CHECK(writes_to_pods(reconcile_pool(see(stale, kNow + 50), memory)) ==
          Writes{"create Pod default/vision-worker-1"});
  }
  SECTION("and not any more when it was seen") {
    stale.put(kube::kPods, {{"metadata", {{"name", "vision-worker-1"}, {"namespace", "default"}, {"uid", "other"}}}});
    stale.put(kube::kPods, {{"metadata", {{"name", "vision-worker-2"}, {"namespace", "default"}, {"uid", "other"}}}});
    CHECK(reconcile_pool(see(stale, kNow + 32), memory).memory.creating_until.size() == 2);  // those made now
    CHECK(writes_to_pods(reconcile_pool(see(stale, kNow + 32), memory)) ==
          Writes{"create Pod default/vision-worker-0", "create Pod default/vision-worker-3"});
  }
}

TEST_CASE("a creation whose answer was lost is repeated before a lower name that has become free") {
  FakeCluster cluster = running(2);
  PoolMemory memory;
  scale(cluster, 0);
  run(cluster, memory);
  cluster.remove(kube::kPods, "vision-worker-1");
  scale(cluster, 2);
  const PoolStep step = reconcile_pool(see(cluster), memory);
  REQUIRE(writes_to_pods(step) == Writes{"create Pod default/vision-worker-1", "create Pod default/vision-worker-2"});
  memory = step.memory;
  forget_failed(memory, step.actions[1]);
  cluster.remove(kube::kPods, "vision-worker-0");
  CHECK(writes_to_pods(reconcile_pool(see(cluster), memory)) == Writes{"create Pod default/vision-worker-2"});
}

TEST_CASE("a draining worker keeps its name until it is gone") {
  FakeCluster cluster = running(2);
  PoolMemory memory;
  scale(cluster, 1);
  run(cluster, memory);
  scale(cluster, 2);
  const PoolStep step = run(cluster, memory);
  const auto gone = live_pods(running(2)).size();
  CHECK(gone == 2);
  CHECK(writes_to_pods(step) == Writes{"create Pod default/vision-worker-2"});
}

TEST_CASE("the names of a namesake's leftover pods are taken") {
  FakeCluster cluster = cluster_with_pool(1);
  json leftover = {{"metadata", {{"name", "vision-worker-0"}, {"namespace", "default"}, {"uid", "old"}}}};
  cluster.put(kube::kPods, leftover);
  PoolMemory memory;
  CHECK(writes_to_pods(run(cluster, memory)) == Writes{"create Pod default/vision-worker-1"});
}

TEST_CASE("the victim of a scale-in") {
  FakeCluster cluster = running(3);
  scale(cluster, 2);
  PoolMemory memory;
  SECTION("is the plan's") {
    PoolWorld world = see(cluster);
    world.victims = {"vision-worker-7", "vision-worker-1"};
    CHECK(writes_to_pods(reconcile_pool(world, memory)) == Writes{"delete Pod default/vision-worker-1"});
  }
  SECTION("else one that is not ready") {
    cluster.at(kube::kPods, "vision-worker-0")["status"]["conditions"] = json::array({condition("Ready", "False")});
    CHECK(writes_to_pods(run(cluster, memory)) == Writes{"delete Pod default/vision-worker-0"});
  }
  SECTION("else the youngest") {
    cluster.at(kube::kPods, "vision-worker-1")["metadata"]["creationTimestamp"] = "2026-01-01T09:00:00Z";
    CHECK(writes_to_pods(run(cluster, memory)) == Writes{"delete Pod default/vision-worker-1"});
  }
}

TEST_CASE("a victim is deleted once, and only if it still is the same pod") {
  FakeCluster cluster = running(3);
  scale(cluster, 2);
  const PoolWorld stale = see(cluster);
  const PoolStep first = reconcile_pool(stale, {});
  REQUIRE(writes_to_pods(first).size() == 1);
  CHECK_FALSE(first.actions[0].uid.empty());
  // The cache still shows three workers: a second victim would be one too many.
  CHECK(writes_to_pods(reconcile_pool(stale, first.memory)).empty());
  // So would a second leader's, but from the same view it picks the same one.
  CHECK(writes_to_pods(reconcile_pool(stale, {})) == writes_to_pods(first));
}

TEST_CASE("to zero and back") {
  FakeCluster cluster = running(4);
  PoolMemory memory;
  scale(cluster, 0);
  run(cluster, memory);
  CHECK(live_pods(cluster).empty());
  cluster.finish_deletions();
  scale(cluster, 2);
  run(cluster, memory);
  CHECK(live_pods(cluster) == std::set<std::string>{"vision-worker-0", "vision-worker-1"});
}

TEST_CASE("a pool whose operator crashes after any write ends in the same state") {
  const auto [from, to] = GENERATE(std::pair(0, 3), std::pair(3, 1), std::pair(2, 5));
  const std::size_t writes = GENERATE(0, 1, 2, 3);
  const auto settle = [&, to = to](FakeCluster cluster, std::size_t first_writes) {
    scale(cluster, to);
    PoolMemory memory;
    run(cluster, memory, first_writes);
    for (int round = 0; round < 5; ++round) {
      PoolMemory restarted;  // a restart remembers nothing
      cluster.finish_deletions();
      make_ready(cluster);
      run(cluster, restarted);
    }
    return cluster;
  };
  const FakeCluster undisturbed = settle(running(from), 100);
  const FakeCluster crashed = settle(running(from), writes);
  CHECK(static_cast<int>(live_pods(crashed).size()) == to);
  CHECK(crashed.comparable() == undisturbed.comparable());
}

TEST_CASE("a settled pool is left alone") {
  FakeCluster cluster = running(3);
  PoolMemory memory;
  run(cluster, memory);
  const PoolStep again = run(cluster, memory);
  CHECK((again.actions.empty() && !again.status));
  CHECK_FALSE(again.again_after.has_value());
}

TEST_CASE("a worker that ended by itself is replaced, the later the more often it happens") {
  FakeCluster cluster = running(1);
  PoolMemory memory;
  double now_seconds = kNow;
  for (const double want_pause_seconds : {5.0, 10.0, 20.0}) {
    INFO(want_pause_seconds);
    const std::string name = *live_pods(cluster).begin();
    cluster.at(kube::kPods, name)["status"] = {{"phase", "Failed"}, {"reason", "Evicted"}};
    const PoolStep step = run(cluster, memory, 100, now_seconds);
    CHECK(writes_to_pods(step) == Writes{"delete Pod default/" + name});
    REQUIRE(step.events.size() == 1);
    CHECK(step.events[0].note.find("Evicted") != std::string::npos);
    cluster.finish_deletions();

    CHECK(writes_to_pods(run(cluster, memory, 100, now_seconds + want_pause_seconds - 1)).empty());
    now_seconds += want_pause_seconds + 1;
    CHECK(writes_to_pods(run(cluster, memory, 100, now_seconds)).size() == 1);
  }
  // Once all are ready again the next failure is the first.
  make_ready(cluster);
  run(cluster, memory, 100, now_seconds + 100);
  CHECK(memory.failures == 0);
}

TEST_CASE("what a lost node takes with it is one failure, however its pods' ends are told") {
  FakeCluster cluster = running(4);
  PoolMemory memory;
  const auto evict = [&](int ordinal) {
    cluster.at(kube::kPods, "vision-worker-" + std::to_string(ordinal))["status"] = {{"phase", "Failed"}};
  };
  evict(0);
  evict(1);
  evict(2);
  run(cluster, memory);
  evict(3);
  run(cluster, memory, 100, kNow + 1);
  cluster.finish_deletions();
  CHECK(memory.failures == 1);
  CHECK(writes_to_pods(run(cluster, memory, 100, kNow + 6)).size() == 4);
}

TEST_CASE("the pool's resources replace those of its template, in the worker's container alone") {
  FakeCluster cluster = cluster_with_pool(1);
  json& spec = cluster.at(kube::kDataWorkerPools, "vision")["spec"];
  spec["template"]["spec"]["containers"].push_back({{"name", "mesh-proxy"}});
  spec["template"]["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", "4"}}}};
  const json resources = {{"requests", {{"cpu", "1"}, {"memory", "512Mi"}}}, {"limits", {{"memory", "1Gi"}}}};
  spec["workerResources"] = resources;
  PoolMemory memory;
  const json pod = run(cluster, memory).actions.at(0).body;
  CHECK(pod["spec"]["containers"][0]["resources"] == resources);
  CHECK(field(pod["spec"]["containers"][1], "/resources").is_null());
}

TEST_CASE("another size reaches a tenth of the workers at a time, at least one, while the others serve") {
  struct Row {
    int workers;
    std::size_t want;  // replaced at a time
  };
  for (const Row& row : {Row{3, 1}, Row{19, 1}, Row{20, 2}, Row{35, 3}}) {
    CAPTURE(row.workers);
    FakeCluster cluster = running(row.workers);
    PoolMemory memory;
    cluster.at(kube::kDataWorkerPools, "vision")["spec"]["workerResources"] = {{"requests", {{"memory", "2Gi"}}}};
    std::size_t replaced = 0;
    while (replaced < static_cast<std::size_t>(row.workers)) {
      const std::size_t removed = writes_to_pods(run(cluster, memory)).size();
      REQUIRE(removed == std::min(row.want, row.workers - replaced));
      replaced += removed;
      CHECK(writes_to_pods(run(cluster, memory)).size() == removed);  // new ones, while the old ones leave
      CHECK(writes_to_pods(run(cluster, memory)).empty());            // waits until they are ready
      cluster.finish_deletions();
      make_ready(cluster);
    }
    CHECK(writes_to_pods(run(cluster, memory)).empty());
  }
}

TEST_CASE("a new template reaches the workers one at a time, while the others serve") {
  FakeCluster cluster = running(3);
  PoolMemory memory;
  cluster.at(kube::kDataWorkerPools, "vision")["spec"]["template"]["spec"]["containers"][0]["image"] = "new";
  for (int replaced = 0; replaced < 3; ++replaced) {
    INFO(replaced);
    const PoolStep remove = run(cluster, memory);
    REQUIRE(writes_to_pods(remove).size() == 1);
    CHECK(live_pods(cluster).size() == 2);
    cluster.finish_deletions();
    run(cluster, memory);
    CHECK(writes_to_pods(run(cluster, memory)).empty());  // waits until the new one is ready
    make_ready(cluster);
  }
  CHECK(writes_to_pods(run(cluster, memory)).empty());
}

TEST_CASE("the status shows what serves, for people and for autoscalers") {
  FakeCluster cluster = running(2);
  const json status = cluster.at(kube::kDataWorkerPools, "vision")["status"];
  CHECK(status["replicas"] == 2);
  CHECK(status["readyReplicas"] == 2);
  CHECK(status["observedGeneration"] == 4);
  CHECK(status["selector"] == "sluice.dev/job=vision,sluice.dev/component=worker");
  CHECK(status["conditions"][0]["status"] == "True");
  CHECK(status["conditions"][0]["lastTransitionTime"] == "2026-01-01T02:00:00Z");
}

bool reports(const PoolStep& step) { return step.status.has_value(); }

void make_ready(FakeCluster& cluster, const std::string& pod) {
  cluster.at(kube::kPods, pod)["status"] = {{"phase", "Running"}, {"conditions", {condition("Ready", "True")}}};
}

TEST_CASE("on the way to the wanted number the status is told now and then, the arrival at once") {
  FakeCluster cluster = cluster_with_pool(3);
  PoolMemory memory;
  CHECK_FALSE(reports(run(cluster, memory)));  // the pods first
  make_ready(cluster, "vision-worker-0");
  const PoolStep soon = run(cluster, memory, 100, kNow + 1);
  CHECK_FALSE(reports(soon));
  CHECK(soon.again_after == std::chrono::milliseconds(9001));
  CHECK(reports(run(cluster, memory, 100, kNow + 10)));
  make_ready(cluster, "vision-worker-1");
  CHECK_FALSE(reports(run(cluster, memory, 100, kNow + 11)));
  SECTION("arrived") {
    make_ready(cluster, "vision-worker-2");
    CHECK(reports(run(cluster, memory, 100, kNow + 11.1)));
    CHECK(cluster.at(kube::kDataWorkerPools, "vision")["status"]["readyReplicas"] == 3);
  }
  SECTION("a status that was refused is written with the next step") {
    memory.unreported_since_seconds.reset();
    CHECK(reports(run(cluster, memory, 100, kNow + 11.1)));
  }
}

TEST_CASE("while other pools wait for their pods, the arrival is not told either, but for so long") {
  FakeCluster cluster = cluster_with_pool(1);
  PoolMemory memory;
  const auto busy_run = [&](double busy_seconds, double now_seconds) {
    PoolWorld world = see(cluster, now_seconds);
    world.busy_seconds = busy_seconds;
    const PoolStep step = reconcile_pool(world, memory);
    memory = step.memory;
    return step;
  };
  run(cluster, memory);
  make_ready(cluster, "vision-worker-0");
  CHECK_FALSE(reports(busy_run(30, kNow + 1)));
  CHECK_FALSE(reports(busy_run(20, kNow + 19)));
  SECTION("the others have theirs") { CHECK(reports(busy_run(0, kNow + 19))); }
  SECTION("the server stays busy") {
    CHECK_FALSE(reports(busy_run(2, kNow + 59)));
    SECTION("and the time is over") { CHECK(reports(busy_run(2, kNow + 61))); }
  }
}

TEST_CASE("how long a status waits for the pods of others") {
  struct Case {
    const char* name;
    double waited_seconds, busy_seconds, want_seconds;
  };
  const Case test =
      GENERATE(Case{"no pod is to be written", 0, 0, 0}, Case{"a few do: its own time is enough", 0.1, 0.5, 0.4},
               Case{"a few still do", 0.6, 0.5, -0.1}, Case{"many do: as long as that takes", 0, 30, 30},
               Case{"many still do, although its own time is over", 25, 20, 20},
               Case{"many always do: a minute", 50, 20, 10}, Case{"no longer", 61, 20, -1});
  INFO(test.name);
  CHECK(report_wait_seconds(test.waited_seconds, test.busy_seconds) == Approx(test.want_seconds));
}

TEST_CASE("a change that no plan asked for is told at once, and the next one then waits") {
  FakeCluster cluster = running(2);
  PoolMemory memory;
  cluster.at(kube::kPods, "vision-worker-0")["status"]["conditions"] = json::array({condition("Ready", "False")});
  CHECK(reports(run(cluster, memory, 100, kNow + 100)));
  cluster.at(kube::kPods, "vision-worker-1")["status"]["conditions"] = json::array({condition("Ready", "False")});
  CHECK_FALSE(reports(run(cluster, memory, 100, kNow + 101)));
  CHECK(reports(run(cluster, memory, 100, kNow + 110)));
}

TEST_CASE("a pool that is being deleted makes no more pods") {
  FakeCluster cluster = cluster_with_pool(3);
  cluster.at(kube::kDataWorkerPools, "vision")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  PoolMemory memory;
  CHECK(run(cluster, memory).actions.empty());
}

}  // namespace
}  // namespace sluice::act
