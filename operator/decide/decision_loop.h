// Observe, decide, order: every interval, and soon after something happened that a decision should not wait for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>

#include "operator/decide/decision_board.h"
#include "operator/decide/orders.h"
#include "operator/observe/snapshot_builder.h"
#include "scheduler/config.h"
#include "src/base/clock.h"

namespace sluice::decide {

struct LoopOptions {
  std::chrono::milliseconds interval{15000};
  // Events come in bursts (eight workers become ready one after another); a decision covers all of a burst.
  // Where a decision takes long, it is made as seldom as that it takes a tenth of the time.
  std::chrono::milliseconds min_pause{1000};
  scheduler::Config scheduler;
  int cluster_cpu_percent = 100;
  // Of run(): one after another, a thousand orders wait for each other's answers, and each holds back a whole pool.
  int orders_at_once = 1;
};

// What the loop needs of the world; all functions are called on the loop's thread, but `perform` and `record` on as
// many as there are orders at once.
struct LoopSeams {
  std::function<observe::ClusterObjects()> see;
  std::function<observe::Observations(std::stop_token)> measure;
  std::function<Result<void>(const kube::Action&, std::stop_token)> perform;
  std::function<void(kube::Event)> record;
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

  // When the next round is due: after the interval, or soon when something was triggered. For who has no threads.
  Clock::TimePoint next_due() const;

 private:
  void decide(int orders_at_once, std::stop_token stop);
  void give_all(std::vector<ScaleOrder> orders, int at_once, const std::stop_token& stop);
  void give(ScaleOrder& order, const std::stop_token& stop);
  void wait_for_next(std::stop_token stop);
  Clock::TimePoint due(bool triggered) const;  // REQUIRES: mutex_ is held, and a round began
  Round round_of(const observe::ClusterObjects& objects, std::shared_ptr<const scheduler::ClusterSnapshot> snapshot,
                 const scheduler::Plan& plan);

  const LoopOptions options_;
  const LoopSeams seams_;
  const Clock& clock_;
  DecisionBoard& board_;
  observe::SnapshotBuilder builder_;
  observe::EstimatorMemories memories_;
  mutable std::mutex mutex_;
  std::optional<Clock::TimePoint> last_round_began_;
  Clock::Duration last_took_{};
  bool triggered_ = false;
  std::stop_source sleep_;  // interrupts the pause until the next decision
};

}  // namespace sluice::decide
