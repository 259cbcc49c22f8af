#include "operator/decide/decision_loop.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "operator/testing/decision_loop_harness.h"
#include "operator/testing/seen_cluster.h"
#include "scheduler/testing/fluid.h"
#include "src/base/testing/catch.h"

namespace sluice::decide {
namespace {

using namespace testing;

TEST_CASE("a starved job gets workers, and the board says why before they are ordered") {
  Harness harness;
  harness.loop.decide_once({});
  const DecisionPointer decision = harness.board.get(kVision);
  REQUIRE(decision);
  CHECK(decision->job_uid == "uid-vision");
  CHECK(decision->plan.workers > 0);
  CHECK(decision->measurement.has_value());
  CHECK_FALSE(decision->plan.explanation.empty());
  REQUIRE(harness.actions.size() == 1);
  CHECK(harness.actions[0].body["spec"]["replicas"] == decision->plan.workers);
  REQUIRE(harness.events.size() == 1);
  CHECK(harness.events[0].reason == "ScaledUp");
}

TEST_CASE("without metrics the last allocation is held, and nothing is written") {
  Harness harness;
  harness.objects = cluster(3);
  harness.measure = [] { return observe::Observations{{}, "Prometheus is down"}; };
  harness.loop.decide_once({});
  CHECK(harness.actions.empty());
  const DecisionPointer decision = harness.board.get(kVision);
  REQUIRE(decision);
  CHECK(decision->plan.workers == 3);
  CHECK_FALSE(decision->plan.estimate.metrics_usable());
  CHECK_THAT(decision->plan.estimate.metrics_problem, Catch::Contains("Prometheus is down"));
}

TEST_CASE("data workers leave a node to a pod of no job that fits without them") {
  Harness harness;
  harness.objects = cluster(4);
  for (int i = 0; i < 4; ++i)
    observe::testing::put(harness.objects.pods,
                          observe::testing::worker("vision-worker-" + std::to_string(i), "n1", "uid-pool"));

  json waiting = observe::testing::pod("web", "", "63");
  waiting["status"]["conditions"] = json::array({{{"type", "PodScheduled"},
                                                  {"status", "False"},
                                                  {"reason", "Unschedulable"},
                                                  {"message", "0/1 nodes are available: 1 Insufficient cpu."}}});
  observe::testing::put(harness.objects.pods, waiting);
  harness.loop.decide_once({});
  REQUIRE(harness.actions.size() == 1);
  CHECK(harness.actions[0].body["spec"]["replicas"] == 2);  // of 500m each, beside 63 cores of 64
  CHECK_THAT(harness.board.get(kVision)->plan.explanation, Catch::Contains("No node has room"));
}

TEST_CASE("workers leave a share of a large node free, and their job says so where that binds") {
  struct Row {
    const char* cpu;  // of the only node
    int want_workers;
    std::string want_said;
  };
  const Row row = GENERATE(
      Row{"4", 7,
          "5 % of the CPU of nodes with four cores and more stays free for other pods (scheduler.freeCpuPercent)."},
      Row{"3", 6, ""}, Row{"64", 8, ""});
  CAPTURE(row.cpu);
  Harness harness;
  harness.objects = cluster(8);  // of 500m each
  for (int i = 0; i < 8; ++i)
    observe::testing::put(harness.objects.pods,
                          observe::testing::worker("vision-worker-" + std::to_string(i), "n1", "uid-pool"));
  observe::testing::put(harness.objects.nodes, observe::testing::node("n1", row.cpu));
  DecisionLoop loop({.free_cpu_percent = 5}, harness.seams(), harness.clock, harness.board);
  loop.decide_once({});
  const DecisionPointer decision = harness.board.get(kVision);
  CHECK(decision->plan.workers == row.want_workers);
  CHECK(decision->left_free == row.want_said);
}

TEST_CASE("a job that runs is told that its pods are scraped too rarely") {
  Harness harness;
  const auto measure = harness.measure;
  harness.measure = [&] {
    auto observations = measure();
    observations.rare_scrapes = "Scraped too rarely.";
    return observations;
  };
  harness.loop.decide_once({});
  CHECK(harness.board.get(kVision)->rare_scrapes == "Scraped too rarely.");
  harness.measure = measure;
  harness.loop.decide_once({});
  CHECK(harness.board.get(kVision)->rare_scrapes == "");
}

TEST_CASE("a round that throws decides nothing, and the next one decides") {
  Harness harness;
  const auto measure = harness.measure;
  harness.measure = []() -> observe::Observations { throw std::runtime_error("odd"); };
  REQUIRE_NOTHROW(harness.loop.decide_once({}));
  CHECK(harness.board.get(kVision) == nullptr);
  harness.measure = measure;
  harness.loop.decide_once({});
  CHECK(harness.board.get(kVision) != nullptr);
}

TEST_CASE("an order that fails is no event, and is given again") {
  Harness harness;
  harness.outcome = unavailable("the API server is away");
  harness.loop.decide_once({});
  CHECK(harness.events.empty());
  harness.outcome = {};
  harness.loop.decide_once({});
  CHECK(harness.actions.size() == 2);
  CHECK(harness.events.size() == 1);
}

TEST_CASE("what the estimator learnt is carried to the next decision") {
  Harness harness;
  harness.loop.decide_once({});
  REQUIRE(harness.board.get(kVision)->plan.estimate.memory.has_value());
  // The next answer of Prometheus is of the same scrape: what is known must come from the memory.
  const auto first = *harness.board.get(kVision)->plan.estimate.memory;
  harness.loop.decide_once({});
  CHECK(harness.board.get(kVision)->plan.estimate.memory->folded_through_seconds == first.folded_through_seconds);
}

TEST_CASE("a job that is gone leaves the board") {
  Harness harness;
  harness.loop.decide_once({});
  harness.objects = {};
  harness.loop.decide_once({});
  CHECK(harness.board.get(kVision) == nullptr);
}

// The job of cluster() with its trainer pod on n1, beside a feeder that may take a fourth of a core.
observe::ClusterObjects cluster_with_feeder(int replicas) {
  observe::ClusterObjects objects = cluster(replicas);
  json job = *objects.jobs.at(kVision);
  job["metadata"]["uid"] = "uid-job";
  objects.jobs[kVision] = shared(job);
  objects.pods[{"default", "vision-0"}] = shared(json::parse(R"({
    "metadata": {"name": "vision-0", "namespace": "default", "uid": "uid-pod",
                 "labels": {"sluice.dev/component": "trainer", "sluice.dev/job": "vision"},
                 "ownerReferences": [{"kind": "Job", "name": "vision", "uid": "uid-job", "controller": true}]},
    "spec": {"nodeName": "n1",
             "initContainers": [{"name": "sluice-feeder", "restartPolicy": "Always",
                                 "resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "500m"}}}],
             "containers": [{"name": "trainer", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {"phase": "Running", "qosClass": "Burstable"}})"));
  return objects;
}

// What the job shows when its feeder makes 1,000 samples/s per core with all the CPU that it is given.
observe::Observations fed(const Harness& harness, double feeder_cores) {
  const double now_seconds = std::chrono::duration<double>(harness.clock.wall_now().time_since_epoch()).count();
  const scheduler::testing::FluidJob job{.demand = 2000, .local_rate = 1000, .local_cores = feeder_cores};
  return {{{{"default", "vision"}, {job.steady(0, now_seconds, 30), ""}}}, ""};
}

TEST_CASE("a starved job on a host with free cores has its feeder grown, and needs no data worker") {
  Harness harness;
  harness.objects = cluster_with_feeder(0);
  harness.resizes_pods = true;
  harness.measure = [&] { return fed(harness, 0.25); };
  harness.loop.decide_once({});
  const DecisionPointer first = harness.board.get(kVision);
  CHECK(first->feeder_millicores == 250);
  CHECK(first->plan.local.at(0).limit_millicores == 63000);
  REQUIRE_FALSE(harness.actions.empty());
  CHECK(harness.actions.back().to_string() == "apply Pod default/vision-0/resize");
  CHECK(harness.events.back().reason == "FeederResized");
  const std::int64_t granted = first->plan.local.at(0).request_millicores;
  CHECK(granted >= 2000);

  json pod = *harness.objects.pods.at({"default", "vision-0"});
  pod["spec"]["initContainers"][0]["resources"]["requests"]["cpu"] = std::to_string(granted) + "m";
  harness.objects.pods[{"default", "vision-0"}] = shared(pod);
  harness.clock.advance(std::chrono::seconds(31));
  harness.measure = [&] { return fed(harness, static_cast<double>(granted) / 1000); };
  harness.loop.decide_once({});
  CHECK(harness.board.get(kVision)->plan.workers == 0);
}

TEST_CASE("where pods cannot be resized the feeder stays as it is, and workers are started") {
  Harness harness;
  harness.objects = cluster_with_feeder(0);
  SECTION("by this server") {}
  SECTION("as long as the server has not answered") { harness.resizes_pods = unavailable("busy"); }
  harness.loop.decide_once({});
  CHECK(harness.board.get(kVision)->plan.local.empty());
  CHECK(harness.board.get(kVision)->plan.workers > 0);
}

TEST_CASE("a refused resize is told, and the next decision counts on workers instead") {
  Harness harness;
  harness.objects = cluster_with_feeder(0);
  harness.resizes_pods = true;
  harness.outcome = Error(ErrorCode::kPermissionDenied, "no right to patch pods/resize");
  harness.loop.decide_once({});
  CHECK(harness.events.at(0).reason == "FeederResizeRefused");
  CHECK(harness.events.at(0).note == "no right to patch pods/resize");
  harness.loop.decide_once({});
  const DecisionPointer decision = harness.board.get(kVision);
  CHECK(decision->plan.workers > 0);
  CHECK_THAT(decision->feeder_problem, Catch::Contains("no right to patch pods/resize"));
}

TEST_CASE("a cap that binds is told with the decision") {
  Harness harness;
  const auto told = [&](std::map<std::string, control::NamespaceCaps> caps) {
    DecisionLoop loop({.namespace_caps = std::move(caps)}, harness.seams(), harness.clock, harness.board);
    loop.decide_once({});
    return harness.board.get(kVision);
  };
  CHECK(told({{"default", {.weight = 10}}})->capped == "Its weight 100 counts as 10, the most in namespace default.");
  CHECK(told({{"default", {.weight = 100}}})->capped.empty());
  CHECK(told({{"default", {.worker_cores = 0.5}}})->plan.workers == 1);
  CHECK_THAT(told({{"default", {.worker_cores = 0.5}}})->plan.explanation, Catch::Contains("Quota default limits it"));
}

// The last written data of the ConfigMap; null: none was written.
json written(const Harness& harness) {
  json data;
  for (const kube::Action& action : harness.actions)
    if (action.resource == kube::kConfigMaps) data = action.body.at("data");
  return data;
}

LoopOptions keeping() { return {.learnt = kube::ObjectKey{"sluice-system", "learnt"}}; }

TEST_CASE("a job like one that ran before has its workers before it is measured") {
  Harness first;
  DecisionLoop loop(keeping(), first.seams(), first.clock, first.board);
  loop.decide_once({});
  const json learnt = written(first);
  REQUIRE(learnt.size() == 1);
  CHECK(first.actions.back().key == kube::ObjectKey{"sluice-system", "learnt"});
  const int workers = first.board.get(kVision)->plan.workers;
  REQUIRE(workers > 0);

  Harness second;  // after a restart, without metrics
  second.measure = [] { return observe::Observations{{}, "not scraped yet"}; };
  SECTION("it is read") {
    second.learnt = learnt;
    DecisionLoop later(keeping(), second.seams(), second.clock, second.board);
    later.decide_once({});
    CHECK(second.board.get(kVision)->plan.workers == workers);
  }
  SECTION("it is not there") {
    DecisionLoop later(keeping(), second.seams(), second.clock, second.board);
    later.decide_once({});
    CHECK(second.board.get(kVision)->plan.workers == 0);
  }
  SECTION("it cannot be read yet") {
    second.learnt = unavailable("busy");
    DecisionLoop later(keeping(), second.seams(), second.clock, second.board);
    later.decide_once({});
    CHECK(second.board.get(kVision)->plan.workers == 0);
    second.learnt = learnt;
    later.decide_once({});
    CHECK(second.board.get(kVision)->plan.workers == workers);
  }
}

TEST_CASE("what was learnt is written when it changes, at most every minute") {
  Harness harness;
  DecisionLoop loop(keeping(), harness.seams(), harness.clock, harness.board);
  const auto writes = [&] {
    return std::count_if(harness.actions.begin(), harness.actions.end(),
                         [](const kube::Action& action) { return action.resource == kube::kConfigMaps; });
  };
  harness.outcome = unavailable("the API server is away");
  loop.decide_once({});
  CHECK(writes() == 1);
  harness.outcome = {};
  loop.decide_once({});
  CHECK(writes() == 1);
  harness.clock.advance(std::chrono::seconds(61));
  loop.decide_once({});
  CHECK(writes() == 2);
  harness.clock.advance(std::chrono::seconds(61));
  loop.decide_once({});
  CHECK(writes() == 2);
}

TEST_CASE("with threads, an order does not wait for the answer to the one before") {
  Harness harness;
  harness.objects.nodes.clear();  // no room: every pool of two goes to the minimum
  for (const char* name : {"one", "two", "three"}) {
    json job = training_job();
    job["metadata"]["name"] = name;
    job["metadata"]["uid"] = std::string("uid-") + name;
    json its_pool = pool(2);
    its_pool["metadata"]["name"] = name;
    its_pool["metadata"]["ownerReferences"] =
        json::array({owner_reference("TrainingJob", name, std::string("uid-") + name)});
    harness.objects.training_jobs[{"default", name}] = shared(job);
    harness.objects.pools[{"default", name}] = shared(its_pool);
  }
  std::mutex mutex;
  std::condition_variable changed;
  int on_their_way = 0;
  LoopSeams seams = harness.seams();
  seams.record = [](const kube::Event&) {};
  seams.perform = [&](const kube::Action&, std::stop_token) -> Result<void> {
    std::unique_lock lock(mutex);
    ++on_their_way;
    changed.notify_all();
    const bool met = changed.wait_for(lock, std::chrono::seconds(20), [&] { return on_their_way == 3; });
    return met ? Result<void>() : unavailable("alone");
  };
  DecisionLoop loop({.orders_at_once = 3}, seams, harness.clock, harness.board);
  std::jthread thread([&](std::stop_token stop) { loop.run(stop); });
  std::unique_lock lock(mutex);
  CHECK(changed.wait_for(lock, std::chrono::seconds(20), [&] { return on_their_way == 3; }));
}

TEST_CASE("a decision that takes long is made as seldom as that it takes a tenth of the time") {
  struct Case {
    int takes_seconds;
    bool triggered;
    int want_pause_seconds;  // from the beginning of the one to that of the next
  };
  for (const Case& c : {Case{0, false, 15}, Case{0, true, 1}, Case{1, false, 15}, Case{1, true, 10}, Case{3, false, 30},
                        Case{3, true, 30}}) {
    CAPTURE(c.takes_seconds, c.triggered);
    Harness harness;
    harness.seeing_takes = std::chrono::seconds(c.takes_seconds);
    const Clock::TimePoint began = harness.clock.now();
    harness.loop.decide_once({});
    if (c.triggered) harness.loop.trigger();
    CHECK(harness.loop.next_due() - began == std::chrono::seconds(c.want_pause_seconds));
  }
}

TEST_CASE("a job is measured whatever the clock of Prometheus says") {
  const double skew_seconds = GENERATE(-3600.0, -600.0, 600.0, 3600.0);
  Harness harness;
  harness.measure = [&] {
    const double now = std::chrono::duration<double>(harness.clock.wall_now().time_since_epoch()).count();
    observe::Observations observations = starved(now + skew_seconds);
    observations.answered_at_seconds = now + skew_seconds;
    return observations;
  };
  for (int round = 0; round < 4; ++round, harness.clock.advance(std::chrono::seconds(30))) harness.loop.decide_once({});
  const scheduler::JobPlan& plan = harness.board.get(kVision)->plan;
  CHECK(plan.workers > 0);
  CHECK(harness.board.get(kVision)->measurement->window_end_seconds <=
        harness.board.last_round()->snapshot->taken_at_seconds);
}

TEST_CASE("it decides every interval") {
  Harness harness;
  std::jthread thread([&](std::stop_token stop) { harness.loop.run(stop); });
  for (int decisions = 1; decisions <= 3; ++decisions) {
    REQUIRE(harness.wait_for_decisions(decisions));
    harness.clock.wait_for_sleepers(1);
    harness.clock.advance(std::chrono::seconds(1));  // the pause after any decision
    harness.clock.wait_for_sleepers(1);
    harness.clock.advance(std::chrono::seconds(15));
  }
}

TEST_CASE("an event does not wait for the interval, but a burst is one decision") {
  Harness harness;
  std::jthread thread([&](std::stop_token stop) { harness.loop.run(stop); });
  REQUIRE(harness.wait_for_decisions(1));
  for (int i = 0; i < 10; ++i) harness.loop.trigger();
  harness.clock.wait_for_sleepers(1);
  harness.clock.advance(std::chrono::seconds(1));
  REQUIRE(harness.wait_for_decisions(2));
  harness.clock.wait_for_sleepers(1);
  std::lock_guard lock(harness.mutex);
  CHECK(harness.decisions == 2);
}

}  // namespace
}  // namespace sluice::decide
