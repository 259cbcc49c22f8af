#include "operator/decide/decision_loop.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::decide {
namespace {

using control::testing::condition;
using control::testing::owner_reference;
using control::testing::pool;
using control::testing::shared;
using control::testing::training_job;
using nlohmann::json;

const kube::ObjectKey kVision{"default", "vision"};

// One running job with `replicas` workers in force, on a large node.
observe::ClusterObjects cluster(int replicas) {
  observe::ClusterObjects objects;
  objects.training_jobs[kVision] = shared(training_job());
  objects.pools[kVision] = shared(pool(replicas));
  objects.jobs[kVision] =
      shared({{"metadata", {{"ownerReferences", {owner_reference("TrainingJob", "vision", "uid-vision")}}}},
              {"status", {{"ready", 1}}}});
  objects.nodes[{"", "n1"}] =
      shared({{"metadata", {{"name", "n1"}}},
              {"status", {{"allocatable", {{"cpu", "64"}}}, {"conditions", {condition("Ready", "True")}}}}});
  return objects;
}

// A job that waits half of its time, measured at `now`.
observe::Observations starved(double now_seconds) {
  scheduler::Measurement measured;
  measured.window_end_seconds = now_seconds;
  measured.window_seconds = 30;
  measured.samples_per_second = 500;
  measured.compute_share = 0.5;
  measured.wait_share = 0.5;
  measured.batches_in_window = 400;
  measured.local = scheduler::SourceRate{500, 0.5};
  return {{{{"default", "vision"}, {measured, ""}}}, ""};
}

struct Harness {
  testing::ManualClock clock;
  DecisionBoard board;
  observe::ClusterObjects objects = cluster(0);
  std::function<observe::Observations()> measure = [this] {
    return starved(std::chrono::duration<double>(clock.wall_now().time_since_epoch()).count());
  };
  std::vector<kube::Action> actions;
  std::vector<kube::Event> events;
  Result<void> outcome;
  std::chrono::seconds seeing_takes{0};

  std::mutex mutex;
  std::condition_variable changed;
  int decisions = 0;

  DecisionLoop loop{{.interval = std::chrono::seconds(15)}, seams(), clock, board};

  LoopSeams seams() {
    return {.see =
                [this] {
                  clock.advance(seeing_takes);
                  return objects;
                },
            .measure = [this](std::stop_token) { return measure(); },
            .perform =
                [this](const kube::Action& action, std::stop_token) {
                  actions.push_back(action);
                  return outcome;
                },
            .record = [this](kube::Event event) { events.push_back(std::move(event)); },
            .decided =
                [this](std::chrono::duration<double>) {
                  std::lock_guard lock(mutex);
                  ++decisions;
                  changed.notify_all();
                }};
  }

  bool wait_for_decisions(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return decisions >= count; });
  }
};

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
  CHECK_FALSE(decision->plan.metrics_usable);
  CHECK_THAT(decision->plan.metrics_problem, Catch::Contains("Prometheus is down"));
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
  REQUIRE(harness.board.get(kVision)->plan.memory.has_value());
  // The next answer of Prometheus is of the same scrape: what is known must come from the memory.
  const auto first = *harness.board.get(kVision)->plan.memory;
  harness.loop.decide_once({});
  CHECK(harness.board.get(kVision)->plan.memory->folded_through_seconds == first.folded_through_seconds);
}

TEST_CASE("a job that is gone leaves the board") {
  Harness harness;
  harness.loop.decide_once({});
  harness.objects = {};
  harness.loop.decide_once({});
  CHECK(harness.board.get(kVision) == nullptr);
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
    its_pool["metadata"]["ownerReferences"] = {owner_reference("TrainingJob", name, std::string("uid-") + name)};
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
