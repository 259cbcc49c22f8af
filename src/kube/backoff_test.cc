#include "src/kube/backoff.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;

TEST_CASE("pauses double to the cap and start over after a quiet time") {
  sluice::testing::ManualClock clock;
  Backoff backoff({}, clock, [] { return 0.0; });
  for (const auto want : {800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30000ms, 30000ms}) {
    CHECK(backoff.next() == want);
    clock.advance(want);
  }
  clock.advance(2min + 1s);
  CHECK(backoff.next() == 800ms);
  CHECK(backoff.next() == 1600ms);
  backoff.reset();
  CHECK(backoff.next() == 800ms);
}

TEST_CASE("jitter adds up to the pause itself") {
  sluice::testing::ManualClock clock;
  Backoff backoff({}, clock, [] { return 0.5; });
  CHECK(backoff.next() == 1200ms);
}

TEST_CASE("the system's randomness is in [0, 1)") {
  const UniformRandom random = system_random();
  for (int i = 0; i < 1000; ++i) {
    const double value = random();
    REQUIRE(value >= 0.0);
    REQUIRE(value < 1.0);
  }
}

}  // namespace
}  // namespace sluice::kube
