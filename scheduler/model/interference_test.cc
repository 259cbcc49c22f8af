#include "scheduler/model/interference.h"

#include <deque>
#include <numeric>
#include <random>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

// Computing time scatters by 2 %, alternately.
struct WatchedTrainer {
  Interference interference;
  double now_seconds = 0;
  int windows = 0;

  void see(int count, double feeder_cores, double compute_seconds) {
    for (int i = 0; i < count; ++i) {
      const double noise = windows++ % 2 == 0 ? 1.02 : 0.98;
      interference.take(feeder_cores, compute_seconds * noise, now_seconds += 15, 15, Config{});
    }
  }
};

TEST_CASE("feeders that slow their trainer down go back to the CPU that they used before") {
  WatchedTrainer watch;
  watch.see(6, 0.5, 0.100);
  watch.see(4, 8, 0.120);
  CHECK_FALSE(watch.interference.cap_cores.has_value());  // too early to tell
  watch.see(2, 8, 0.120);
  CHECK(watch.interference.cap_cores == 0.5);
}

TEST_CASE("a growth from the very first window is judged, too") {
  WatchedTrainer watch;
  watch.see(1, 0.5, 0.100);
  watch.see(10, 8, 0.130);
  CHECK(watch.interference.cap_cores == 0.5);
}

TEST_CASE("what is no interference") {
  WatchedTrainer watch;
  watch.see(6, 0.5, 0.100);
  SECTION("computing time as before") { watch.see(40, 8, 0.100); }
  SECTION("a rise below a twentieth") { watch.see(40, 8, 0.104); }
  SECTION("less computing time") { watch.see(40, 8, 0.050); }
  SECTION("a rise while the feeders use what they used") { watch.see(40, 0.6, 0.200); }
  SECTION("a rise within the noise") {
    for (int i = 0; i < 40; ++i) watch.interference.take(8, i % 2 == 0 ? 0.05 : 0.18, 1000 + 15 * i, 15, Config{});
  }
  CHECK_FALSE(watch.interference.cap_cores.has_value());
}

TEST_CASE("a growth that did no harm is what the next one is compared with") {
  WatchedTrainer watch;
  watch.see(6, 0.5, 0.100);
  watch.see(20, 4, 0.103);
  watch.see(10, 16, 0.120);
  CHECK(watch.interference.cap_cores == 4);
}

TEST_CASE("feeders that shrink begin anew: their trainer may have changed meanwhile") {
  WatchedTrainer watch;
  watch.see(6, 8, 0.100);
  watch.see(6, 1, 0.150);
  watch.see(10, 8, 0.150);
  CHECK_FALSE(watch.interference.cap_cores.has_value());
}

// A busy machine: each second's computing time scatters by a fifth. Metrics show the mean of half a minute, and are
// read every five seconds.
TEST_CASE("overlapping windows of a busy machine are no proof") {
  constexpr int kRuns = 400, kWindowSeconds = 30, kPeriodSeconds = 5;
  int capped = 0;
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0.100, 0.020);
  for (int run = 0; run < kRuns; ++run) {
    Interference interference;
    std::deque<double> seconds;
    for (int now = 1; now <= 600; ++now) {
      seconds.push_back(noise(random));
      if (std::ssize(seconds) > kWindowSeconds) seconds.pop_front();
      if (now < kWindowSeconds || now % kPeriodSeconds != 0) continue;
      const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / kWindowSeconds;
      interference.take(now < 120 ? 0.3 : 0.98, mean, now, kWindowSeconds, Config{});
    }
    capped += interference.cap_cores ? 1 : 0;
  }
  CHECK(capped <= kRuns / 100);
}

TEST_CASE("after ten minutes it may be tried again") {
  WatchedTrainer watch;
  watch.see(6, 0.5, 0.100);
  watch.see(6, 8, 0.120);
  REQUIRE(watch.interference.cap_cores.has_value());
  watch.see(38, 0.5, 0.100);
  CHECK(watch.interference.cap_cores.has_value());
  watch.see(1, 0.5, 0.100);
  CHECK_FALSE(watch.interference.cap_cores.has_value());
}

}  // namespace
}  // namespace sluice::scheduler
