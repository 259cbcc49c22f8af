// A clock that moves only when a test says so.
#pragma once

#include <condition_variable>
#include <mutex>

#include "src/base/clock.h"

namespace sluice::testing {

// Thread safety: all methods may be called from any thread. Sleepers wake when advance() passes their deadline.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override {
    std::lock_guard lock(mutex_);
    return TimePoint(elapsed_);
  }

  // Starts at 2026-01-01T00:00:00Z, so that printed times are readable.
  WallTimePoint wall_now() const override {
    std::lock_guard lock(mutex_);
    return WallTimePoint(std::chrono::seconds(1767225600)) +
           std::chrono::duration_cast<std::chrono::system_clock::duration>(elapsed_ + wall_error_);
  }

  bool sleep_until(TimePoint deadline, std::stop_token stop) const override {
    std::unique_lock lock(mutex_);
    ++sleepers_;
    changed_.notify_all();
    const bool reached = changed_.wait(lock, stop, [&] { return TimePoint(elapsed_) >= deadline; });
    --sleepers_;
    return reached && !stop.stop_requested();
  }

  void advance(Duration duration) {
    std::lock_guard lock(mutex_);
    elapsed_ += duration;
    changed_.notify_all();
  }

  // The wall clock is corrected; now() goes on as before.
  void jump_wall(Duration forward) {
    std::lock_guard lock(mutex_);
    wall_error_ += forward;
  }

  // Blocks until `count` threads sleep on this clock: the point at which advance() is deterministic.
  void wait_for_sleepers(int count) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sleepers_ >= count; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  mutable int sleepers_ = 0;
  Duration elapsed_{0};
  Duration wall_error_{0};
};

}  // namespace sluice::testing
