// Time, injected.
//
// Logic that needs the time takes a Clock&; only main() makes a SystemClock. Tests use testing/manual_clock.h.
// Thread safety: all implementations may be used from any thread.
#pragma once

#include <chrono>
#include <stop_token>

namespace sluice {

class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using WallTimePoint = std::chrono::system_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  virtual ~Clock() = default;

  // Monotonic: for deadlines and durations.
  virtual TimePoint now() const = 0;

  // Wall clock: for what people and other machines read.
  virtual WallTimePoint wall_now() const = 0;

  // Blocks until `deadline` or until `stop` is requested. Returns true when the deadline was reached.
  virtual bool sleep_until(TimePoint deadline, std::stop_token stop) const = 0;

  bool sleep_for(Duration duration, std::stop_token stop) const { return sleep_until(now() + duration, stop); }
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  WallTimePoint wall_now() const override { return std::chrono::system_clock::now(); }
  bool sleep_until(TimePoint deadline, std::stop_token stop) const override;
};

// CPU time used so far by the calling thread, in seconds. A "busy" second in Sluice's metrics is one of these.
double thread_cpu_seconds();

// CPU time used so far by all threads of this process, ended ones included, without its child processes; in seconds.
double process_cpu_seconds();

}  // namespace sluice
