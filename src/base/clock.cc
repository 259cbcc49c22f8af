#include "src/base/clock.h"

#include <condition_variable>
#include <ctime>
#include <mutex>

namespace sluice {

bool SystemClock::sleep_until(TimePoint deadline, std::stop_token stop) const {
  std::mutex mutex;
  std::condition_variable_any wakeup;
  std::unique_lock lock(mutex);
  wakeup.wait_until(lock, stop, deadline, [] { return false; });
  return !stop.stop_requested();
}

namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

double thread_cpu_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

double process_cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace sluice
