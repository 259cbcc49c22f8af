#include "src/base/rate_limit.h"

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

int taken_at(RateLimit& limit, Clock::TimePoint now) {
  int taken = 0;
  while (taken < 1000 && limit.take(now)) ++taken;
  return taken;
}

TEST_CASE("so many at once, then as many as time brings, and no more after a pause than at once") {
  const Clock::TimePoint begin{};
  RateLimit limit(2, 5, begin);
  CHECK(taken_at(limit, begin) == 5);
  CHECK(taken_at(limit, begin + milliseconds(499)) == 0);
  CHECK(taken_at(limit, begin + milliseconds(500)) == 1);
  CHECK(taken_at(limit, begin + milliseconds(2000)) == 3);
  CHECK(taken_at(limit, begin + std::chrono::hours(1)) == 5);
}

}  // namespace
}  // namespace sluice
