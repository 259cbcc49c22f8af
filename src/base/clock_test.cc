#include "src/base/clock.h"

#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a sleep ends when its deadline is reached") {
  SystemClock clock;
  const auto start = clock.now();
  CHECK(clock.sleep_for(5ms, {}));
  CHECK(clock.now() - start >= 5ms);
}

TEST_CASE("a stop request ends a sleep at once and says so") {
  SystemClock clock;
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  CHECK_FALSE(clock.sleep_for(1h, stop.get_token()));
}

TEST_CASE("a manual clock wakes a sleeper exactly when its deadline has passed") {
  testing::ManualClock clock;
  bool reached = false;
  std::jthread sleeper([&] { reached = clock.sleep_for(10s, {}); });
  clock.wait_for_sleepers(1);
  clock.advance(10s);
  sleeper.join();
  CHECK(reached);
}

TEST_CASE("thread CPU time grows with work of this thread") {
  const double before = thread_cpu_seconds();
  volatile double sink = 1;
  while (thread_cpu_seconds() - before < 0.001) sink = sink * 1.0000001;
  CHECK(thread_cpu_seconds() > before);
}

TEST_CASE("process CPU time holds the work of all threads, of those that have ended, too") {
  const double before = process_cpu_seconds();
  double of_thread = 0;
  std::jthread([&] {
    volatile double sink = 1;
    while (thread_cpu_seconds() < 0.002) sink = sink * 1.0000001;
    of_thread = thread_cpu_seconds();
  }).join();
  CHECK(process_cpu_seconds() - before >= of_thread);
}

}  // namespace
}  // namespace sluice
