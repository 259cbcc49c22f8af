// Time in a simulation: it passes when the simulation says so, or when a thread sleeps.
#pragma once

#include <algorithm>

#include "src/base/clock.h"

namespace sluice::simulation {

// Thread safety: none; a simulation has one thread. All programs of a simulation share the moment; their wall clocks
// may differ (SkewedClock).
class VirtualClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(elapsed_); }

  // Starts at 2026-01-01T00:00:00Z.
  WallTimePoint wall_now() const override {
    return WallTimePoint(std::chrono::seconds(1767225600)) +
           std::chrono::duration_cast<std::chrono::system_clock::duration>(elapsed_);
  }

  // A sleep in the only thread lets time pass for all.
  bool sleep_until(TimePoint deadline, std::stop_token stop) const override {
    if (stop.stop_requested()) return false;
    advance_to(deadline);
    return true;
  }

  void advance_to(TimePoint time) const { elapsed_ = std::max(elapsed_, time.time_since_epoch()); }

  double seconds() const { return std::chrono::duration<double>(elapsed_).count(); }
  static TimePoint at_seconds(double seconds) {
    return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
  }

 private:
  mutable Duration elapsed_{0};
};

// One machine's clock: its wall clock is wrong by `skew`, which may jump.
class SkewedClock final : public Clock {
 public:
  // REQUIRES: `truth` outlives the clock.
  explicit SkewedClock(const VirtualClock& truth) : truth_(truth) {}

  TimePoint now() const override { return truth_.now(); }
  WallTimePoint wall_now() const override { return truth_.wall_now() + skew_; }
  bool sleep_until(TimePoint deadline, std::stop_token stop) const override {
    return truth_.sleep_until(deadline, std::move(stop));
  }

  void set_skew(std::chrono::seconds skew) { skew_ = skew; }

 private:
  const VirtualClock& truth_;
  std::chrono::seconds skew_{0};
};

}  // namespace sluice::simulation
