// When a server that has failed is asked again.
#include "src/cache/breaker.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/cache/wanted_places.h"

namespace sluice::cache {
namespace {

using Leave = Breaker::Leave;

TEST_CASE("a server that fails is left alone for a second, and for twice as long each time up to half a minute") {
  sluice::testing::ManualClock clock;
  Breaker breaker(clock);
  CHECK(breaker.leave() == Leave::kGiven);
  CHECK(breaker.failed(Leave::kGiven));
  for (const int seconds : {1, 2, 4, 8, 16, 30, 30}) {
    INFO(seconds);
    clock.advance(std::chrono::seconds(seconds) - std::chrono::milliseconds(1));
    CHECK(breaker.is_open());
    CHECK(breaker.leave() == Leave::kNone);
    clock.advance(std::chrono::milliseconds(1));
    CHECK(breaker.leave() == Leave::kToTry);
    CHECK_FALSE(breaker.failed(Leave::kToTry));
  }
  clock.advance(Breaker::kBackOffMax);
  CHECK(breaker.leave() == Leave::kToTry);
  CHECK(breaker.answered());
  CHECK_FALSE(breaker.is_open());
  CHECK(breaker.leave() == Leave::kGiven);
  CHECK_FALSE(breaker.answered());
  CHECK(breaker.failed(Leave::kGiven));
  clock.advance(Breaker::kBackOffMin);
  CHECK(breaker.leave() == Leave::kToTry);
}

TEST_CASE("one thread tries, and those that asked at the same time make the wait no longer") {
  sluice::testing::ManualClock clock;
  Breaker breaker(clock);
  for (int thread = 0; thread < 3; ++thread) CHECK(breaker.leave() == Leave::kGiven);
  CHECK(breaker.failed(Leave::kGiven));
  CHECK_FALSE(breaker.failed(Leave::kGiven));
  CHECK_FALSE(breaker.failed(Leave::kGiven));
  clock.advance(Breaker::kBackOffMin);
  CHECK(breaker.leave() == Leave::kToTry);
  CHECK(breaker.leave() == Leave::kNone);
}

TEST_CASE("a wanted place is remembered until another answer or another place of its slot") {
  WantedPlaces wanted;
  CHECK_FALSE(wanted.has({"a", "1"}));
  wanted.note({"a", "1"}, true);
  CHECK(wanted.has({"a", "1"}));
  CHECK_FALSE(wanted.has({"b", "1"}));
  wanted.note({"b", "1"}, false);
  CHECK(wanted.has({"a", "1"}));
  wanted.note({"a", "1"}, false);
  CHECK_FALSE(wanted.has({"a", "1"}));
}

}  // namespace
}  // namespace sluice::cache
