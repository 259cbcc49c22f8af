// Keys that need work. The algorithm is client-go's (util/workqueue/queue.go): a key is waiting at most once, is never
// in two workers' hands at a time, and a key added while in work comes back after done(): no change is lost.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include "src/base/clock.h"
#include "src/kube/resource.h"

namespace sluice::kube {

struct WorkQueueOptions {
  std::chrono::milliseconds first_retry{5};  // doubles with every add_rate_limited since the last forget()
  std::chrono::milliseconds max_retry{std::chrono::seconds(1000)};
};

// Thread safety: all methods may be called from any thread. Key: ordered, copyable.
// Invariants: waiting_ holds each key at most once; a key in waiting_ is in dirty_ and not in processing_.
template <typename Key = ObjectKey>
class WorkQueue {
 public:
  // REQUIRES: `clock` outlives the queue.
  explicit WorkQueue(const Clock& clock, WorkQueueOptions options = {})
      : clock_(clock), options_(options), timer_([this](std::stop_token stop) { run_timer(stop); }) {}

  void add(const Key& key) {
    std::lock_guard lock(mutex_);
    add_locked(key);
  }

  // Adds the key after `delay`. Of several delayed adds of a key the earliest counts.
  void add_after(const Key& key, std::chrono::milliseconds delay) {
    if (delay <= std::chrono::milliseconds(0)) return add(key);
    const Clock::TimePoint due = clock_.now() + delay;
    std::lock_guard lock(mutex_);
    const auto [entry, inserted] = due_times_.emplace(key, due);
    if (!inserted) {
      if (entry->second <= due) return;
      schedule_.erase({entry->second, key});
      entry->second = due;
    }
    schedule_.emplace(due, key);
    if (schedule_.begin()->first == due) timer_sleep_.request_stop();  // it is the next one: sleep anew
  }

  // For a key whose work failed: the pause doubles with every call since forget().
  void add_rate_limited(const Key& key) { add_after(key, next_retry(key)); }

  // The work on the key succeeded: its next failure starts with the first pause again.
  void forget(const Key& key) {
    std::lock_guard lock(mutex_);
    failures_.erase(key);
  }

  // Blocks for a key; nullopt when `stop` is requested. The caller must call done(key).
  std::optional<Key> get(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); }) || stop.stop_requested()) return std::nullopt;
    Key key = std::move(waiting_.front());
    waiting_.pop_front();
    dirty_.erase(key);
    processing_.insert(key);
    return key;
  }

  // REQUIRES: key came from get().
  void done(const Key& key) {
    std::lock_guard lock(mutex_);
    processing_.erase(key);
    if (dirty_.count(key) == 0) return;
    waiting_.push_back(key);
    changed_.notify_one();
  }

  // Keys ready for a worker (not the delayed ones, not the ones in work).
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  void add_locked(const Key& key) {
    if (!dirty_.insert(key).second || processing_.count(key) != 0) return;
    waiting_.push_back(key);
    changed_.notify_one();
  }

  std::chrono::milliseconds next_retry(const Key& key) {
    std::lock_guard lock(mutex_);
    const int failures = failures_[key]++;
    std::chrono::milliseconds pause = options_.first_retry;
    for (int i = 0; i < failures && pause < options_.max_retry; ++i) pause *= 2;
    return std::min(pause, options_.max_retry);
  }

  // Moves due keys into the queue; sleeps on the clock in between, until the next due time or a nearer one is added.
  void run_timer(std::stop_token stop) {
    std::stop_callback wake_on_stop(stop, [this] {
      std::lock_guard lock(mutex_);
      timer_sleep_.request_stop();
    });
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      while (!schedule_.empty() && schedule_.begin()->first <= clock_.now()) {
        const Key key = schedule_.begin()->second;
        schedule_.erase(schedule_.begin());
        due_times_.erase(key);
        add_locked(key);
      }
      timer_sleep_ = std::stop_source();
      const Clock::TimePoint until = schedule_.empty() ? Clock::TimePoint::max() : schedule_.begin()->first;
      const std::stop_token interrupted = timer_sleep_.get_token();
      lock.unlock();
      if (!stop.stop_requested()) clock_.sleep_until(until, interrupted);
      lock.lock();
    }
  }

  const Clock& clock_;
  const WorkQueueOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Key> waiting_;
  std::set<Key> dirty_;
  std::set<Key> processing_;
  std::map<Key, int> failures_;
  std::map<Key, Clock::TimePoint> due_times_;
  std::set<std::pair<Clock::TimePoint, Key>> schedule_;
  std::stop_source timer_sleep_;
  std::jthread timer_;  // last: it uses the rest
};

}  // namespace sluice::kube
