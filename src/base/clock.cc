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

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace sluice
