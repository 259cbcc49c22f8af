// Takes keys from a work queue and reconciles them, a few at a time, never the same key twice at once.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/kube/work_queue.h"

namespace sluice::act {

// When to look at an object again without an event, after the urgent ones; nullopt: not.
using Again = Result<std::optional<std::chrono::milliseconds>>;

// Thread safety: enqueue() and enqueue_report() may be called from any thread; start() and stop() from one.
class Controller {
 public:
  // Brings one object to its wanted state. An error or an exception is retried with growing pauses, at most a minute
  // apart. A Conflict is retried when the key is added again, or after a second.
  using Reconcile = std::function<Again(const kube::ObjectKey& key, std::stop_token stop)>;

  // `failed` is called for every error but conflicts, for the metrics. REQUIRES: clock outlives the controller.
  Controller(std::string name, Reconcile reconcile, std::function<void()> failed, const Clock& clock);
  ~Controller() { stop(); }

  void enqueue(const kube::ObjectKey& key, kube::Priority priority = kube::Priority::kNormal) {
    queue_.add(key, priority);
  }

  // For reports: changes of the same object within `delay` are reported together, and after all other work.
  void enqueue_report(const kube::ObjectKey& key, std::chrono::milliseconds delay) {
    queue_.add_after(key, delay, kube::Priority::kLow);
  }

  void start(int threads);

  // Reconciles the next key that is ready; false when there is none. For callers without threads. REQUIRES: not
  // started.
  bool step(std::stop_token stop = {});

  // When a delayed key becomes ready; nullopt when none is delayed.
  std::optional<Clock::TimePoint> next_due() const { return queue_.next_due(); }
  bool has_ready() const { return queue_.size() > 0; }

  // For how long the reconcile that has run longest has been running. May be called from any thread.
  Clock::Duration longest_running() const;

  // Objects that wait for more than a report.
  std::size_t backlog() const { return queue_.urgent(); }

  // All objects that wait.
  std::size_t waiting() const { return queue_.size(); }

  // Returns when no reconcile is running any more.
  void stop();

 private:
  void work(std::stop_token stop);
  void reconcile_one(const kube::ObjectKey& key, std::stop_token stop);

  const std::string name_;
  const Reconcile reconcile_;
  const std::function<void()> failed_;
  const Clock& clock_;
  kube::WorkQueue<> queue_;
  mutable std::mutex mutex_;
  std::map<kube::ObjectKey, Clock::TimePoint> running_since_;
  std::vector<std::jthread> threads_;
};

}  // namespace sluice::act
