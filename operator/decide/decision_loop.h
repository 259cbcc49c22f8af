// Observe, decide, order: every interval, and soon after something happened that a decision should not wait for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "operator/decide/decision_board.h"
#include "operator/decide/feeder_resizing.h"
#include "operator/decide/learnt_jobs.h"
#include "operator/decide/orders.h"
#include "operator/decide/worker_sizing.h"
#include "operator/observe/clock_skew.h"
#include "operator/observe/snapshot_builder.h"
#include "scheduler/model/config.h"
#include "src/base/clock.h"

namespace sluice::decide {

struct LoopOptions {
  std::chrono::milliseconds interval{15000};
  // Events come in bursts (eight workers become ready one after another); a decision covers all of a burst.
  // Slow decisions are made less often: they take a tenth of the time at most.
  std::chrono::milliseconds min_pause{1000};
  scheduler::Config scheduler;
  int cluster_cpu_percent = 100;
  int free_cpu_percent = 0;
  bool resize_feeders = true;  // where the server can
  control::NodeFacts nodes;
  control::Budgets budgets;
  std::map<std::string, control::NamespaceCaps> namespace_caps;
  std::map<std::string, control::SharedStorage> storages;
  std::optional<kube::ObjectKey> learnt;  // the ConfigMap that keeps knowledge of jobs; none: it is not kept
  // The orders that run() has under way at a time. With one at a time, a thousand orders would wait for each other.
  int orders_at_once = 1;
};

// The loop's inputs and outputs. All functions are called on the loop's thread, but `perform` and `record` on one
// thread per order under way.
struct LoopSeams {
  std::function<observe::ClusterObjects()> see;
  std::function<observe::Observations(std::stop_token)> measure;
  std::function<Result<void>(const kube::Action&, std::stop_token)> perform;
  std::function<void(kube::Event)> record;
  // Whether the server resizes pods in place. Asked until it has been answered once.
  std::function<Result<bool>(std::stop_token)> resizes_pods;
  // The data of LoopOptions::learnt. Asked until it has been answered once; NotFound: there is none yet.
  std::function<Result<kube::Json>(std::stop_token)> read_learnt;
  // After every decision is on the board, before its orders: how long it took (without measuring).
  std::function<void(std::chrono::duration<double>)> decided;
};

// Thread safety: trigger() may be called from any thread; run() and decide_once() from one at a time.
class DecisionLoop {
 public:
  // REQUIRES: clock and board outlive the loop.
  DecisionLoop(LoopOptions options, LoopSeams seams, const Clock& clock, DecisionBoard& board);

  // Decides until `stop`.
  void run(std::stop_token stop);

  // A job started or finished, a worker was lost: decide soon.
  void trigger();

  // One round: measure, see, decide, publish, order, on the caller's thread alone. An order that fails is logged and
  // follows from the next round.
  void decide_once(std::stop_token stop);

  // When the next round is due: after the interval, or soon after a trigger. For callers without threads.
  Clock::TimePoint next_due() const;

  // The time since run() last showed a sign of life. It counts from the last answered request of the round under way,
  // or from the moment at which the next round was due. Zero if it does not run. May be called from any thread.
  Clock::Duration silent_for() const;

  // Whether a resize has failed, and will be tried again. REQUIRES: no round is under way.
  bool is_waiting() const;

 private:
  void decide(int orders_at_once, const std::stop_token& stop);
  void run_round(int orders_at_once, const std::stop_token& stop);
  observe::Circumstances circumstances(double now_seconds, std::stop_token stop);
  void recall(std::stop_token stop);
  std::optional<api::WorkerSize> size_of(const scheduler::JobId& job) const;
  void learn(const scheduler::Plan& plan, const std::stop_token& stop);
  void wait_for_next(std::stop_token stop);
  Result<void> perform(const kube::Action& action, const std::stop_token& stop);
  void show_life();
  Clock::TimePoint due(bool triggered) const;  // REQUIRES: mutex_ is held, and a round began
  Round round_of(const observe::ClusterObjects& objects, std::shared_ptr<const scheduler::ClusterSnapshot> snapshot,
                 const scheduler::Plan& plan);

  const LoopOptions options_;
  const LoopSeams seams_;
  const Clock& clock_;
  DecisionBoard& board_;
  observe::SnapshotBuilder builder_;
  observe::EstimatorMemories memories_;
  FeederResizing resizing_;
  WorkerSizing sizing_;
  observe::ClockSkew skew_;
  std::string rare_scrapes_;                 // of the last round
  std::optional<bool> server_resizes_pods_;  // none: not answered yet
  LearntJobs learnt_;
  bool recalled_ = false;
  std::optional<Clock::TimePoint> learnt_written_at_;
  mutable std::mutex mutex_;
  std::optional<Clock::TimePoint> last_round_began_;
  Clock::Duration last_took_{};
  bool triggered_ = false;
  std::optional<Clock::TimePoint> alive_until_;  // none: run() does not run
  std::stop_source sleep_;                       // interrupts the pause until the next decision
};

}  // namespace sluice::decide
