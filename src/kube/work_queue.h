// Keys that need work. The algorithm is client-go's (util/workqueue/queue.go): a key is waiting at most once, and is
// never in two workers' hands at a time. A key added while in work comes back after done(): no change is lost.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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

// Low: keys that can wait, such as the objects of the first list after a start, or a report of finished work.
enum class Priority { kLow, kNormal };

struct WorkQueueOptions {
  std::chrono::milliseconds first_retry{5};  // doubles with every add_rate_limited since the last forget()
  std::chrono::milliseconds max_retry{std::chrono::seconds(1000)};
  // Of this many keys taken in a row one is of low priority if any waits, so that nothing waits for ever.
  int low_share = 8;
};

// Thread safety: all methods may be called from any thread. There is a thread only where a caller blocks in get().
// Key: ordered, copyable.
// Invariants: a key waits at most once, in one of the two lines; a waiting key is in dirty_ and not in processing_.
template <typename Key = ObjectKey>
class WorkQueue {
 public:
  // REQUIRES: `clock` outlives the queue.
  explicit WorkQueue(const Clock& clock, WorkQueueOptions options = {}) : clock_(clock), options_(options) {}

  // A key that waits already moves up if the new priority is higher.
  void add(const Key& key, Priority priority = Priority::kNormal) {
    std::lock_guard lock(mutex_);
    add_locked(key, priority);
  }

  // Adds the key after `delay`. Of several delayed adds of a key the earliest and the highest priority count.
  void add_after(const Key& key, std::chrono::milliseconds delay, Priority priority = Priority::kNormal) {
    if (delay <= std::chrono::milliseconds(0)) return add(key, priority);
    const Clock::TimePoint due = clock_.now() + delay;
    std::lock_guard lock(mutex_);
    const auto [entry, inserted] = delayed_.emplace(key, Delayed{due, priority});
    if (!inserted) {
      Delayed& delayed = entry->second;
      delayed.priority = std::max(delayed.priority, priority);
      if (delayed.due <= due) return;
      schedule_.erase({delayed.due, key});
      delayed.due = due;
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
    if (!timer_.joinable()) timer_ = std::jthread([this](std::stop_token end) { run_timer(end); });
    const auto waiting = [this] { return !normal_.empty() || !low_.empty(); };
    if (!changed_.wait(lock, stop, waiting) || stop.stop_requested()) return std::nullopt;
    return take_locked();
  }

  // A key that is ready now; nullopt when there is none. The caller must call done(key).
  std::optional<Key> try_get() {
    std::lock_guard lock(mutex_);
    add_due_locked();
    if (normal_.empty() && low_.empty()) return std::nullopt;
    return take_locked();
  }

  // When the next delayed key is due; nullopt when none is delayed.
  std::optional<Clock::TimePoint> next_due() const {
    std::lock_guard lock(mutex_);
    if (schedule_.empty()) return std::nullopt;
    return schedule_.begin()->first;
  }

  // REQUIRES: key came from get() or try_get().
  void done(const Key& key) {
    std::lock_guard lock(mutex_);
    processing_.erase(key);
    const auto again = dirty_.find(key);
    if (again != dirty_.end() && again->second.ticket == 0) enqueue_locked(key, again->second);
  }

  // Keys of normal priority that are ready for a worker.
  std::size_t urgent() const {
    std::lock_guard lock(mutex_);
    return normal_.size();
  }

  // Keys ready for a worker (not the delayed ones, not the ones in work).
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return normal_.size() + low_.size();
  }

 private:
  using Line = std::map<std::uint64_t, Key>;  // by ticket: first come, first served
  struct Dirty {
    Priority priority;
    std::uint64_t ticket = 0;  // 0: does not wait, because the key is in work
  };

  struct Delayed {
    Clock::TimePoint due;
    Priority priority;
  };

  Line& line_of(Priority priority) { return priority == Priority::kLow ? low_ : normal_; }

  void enqueue_locked(const Key& key, Dirty& dirty) {
    dirty.ticket = ++last_ticket_;
    line_of(dirty.priority).emplace(dirty.ticket, key);
    changed_.notify_one();
  }

  void add_locked(const Key& key, Priority priority) {
    const auto [entry, inserted] = dirty_.emplace(key, Dirty{priority});
    Dirty& dirty = entry->second;
    if (!inserted && dirty.priority >= priority) return;
    if (dirty.ticket != 0) line_of(dirty.priority).erase(dirty.ticket);
    dirty.priority = priority;
    if (processing_.count(key) == 0) enqueue_locked(key, dirty);
  }

  // REQUIRES: some key waits.
  Key take_locked() {
    const bool low_is_due = !low_.empty() && ++taken_in_a_row_ >= options_.low_share;
    Line& line = normal_.empty() || low_is_due ? low_ : normal_;
    if (&line == &low_) taken_in_a_row_ = 0;
    Key key = std::move(line.begin()->second);
    line.erase(line.begin());
    dirty_.erase(key);
    processing_.insert(key);
    return key;
  }

  std::chrono::milliseconds next_retry(const Key& key) {
    std::lock_guard lock(mutex_);
    const int failures = failures_[key]++;
    std::chrono::milliseconds pause = options_.first_retry;
    for (int i = 0; i < failures && pause < options_.max_retry; ++i) pause *= 2;
    return std::min(pause, options_.max_retry);
  }

  void add_due_locked() {
    while (!schedule_.empty() && schedule_.begin()->first <= clock_.now()) {
      const Key key = schedule_.begin()->second;
      schedule_.erase(schedule_.begin());
      add_locked(key, delayed_.extract(key).mapped().priority);
    }
  }

  // Moves due keys into the queue; sleeps on the clock in between, until the next due time or a nearer one is added.
  void run_timer(std::stop_token stop) {
    std::stop_callback wake_on_stop(stop, [this] {
      std::lock_guard lock(mutex_);
      timer_sleep_.request_stop();
    });
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      add_due_locked();
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
  Line normal_;
  Line low_;
  std::uint64_t last_ticket_ = 0;
  int taken_in_a_row_ = 0;  // from normal_, while low_ was not empty
  std::map<Key, Dirty> dirty_;
  std::set<Key> processing_;
  std::map<Key, int> failures_;
  std::map<Key, Delayed> delayed_;
  std::set<std::pair<Clock::TimePoint, Key>> schedule_;
  std::stop_source timer_sleep_;
  std::jthread timer_;  // last: it uses the rest
};

}  // namespace sluice::kube
