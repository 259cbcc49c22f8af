// A decision loop over a cluster of one job, whose seams a test sets.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "operator/decide/decision_loop.h"
#include "operator/testing/objects.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::decide::testing {

using control::testing::condition;
using control::testing::kVision;
using control::testing::owner_reference;
using control::testing::pool;
using control::testing::shared;
using control::testing::training_job;
using nlohmann::json;

// One running job with `replicas` workers in force, on a large node.
inline observe::ClusterObjects cluster(int replicas) {
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
inline observe::Observations starved(double now_seconds) {
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
  sluice::testing::ManualClock clock;
  DecisionBoard board;
  observe::ClusterObjects objects = cluster(0);
  std::function<observe::Observations()> measure = [this] {
    return starved(std::chrono::duration<double>(clock.wall_now().time_since_epoch()).count());
  };
  std::vector<kube::Action> actions;
  std::vector<kube::Event> events;
  Result<void> outcome;
  Result<bool> resizes_pods = false;
  Result<json> learnt = not_found("no such ConfigMap");
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
            .resizes_pods = [this](std::stop_token) { return resizes_pods; },
            .read_learnt = [this](std::stop_token) { return learnt; },
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

}  // namespace sluice::decide::testing
