#include "operator/observe/clock_skew.h"

#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

TEST_CASE("a clock that is wrong by the same each time is corrected, in either direction") {
  for (const double skew : {-3600.0, -30.0, 30.0, 3600.0}) {
    ClockSkew ahead;
    CHECK(ahead.seconds_ahead(1000, 1000 + skew) == 0);  // one reading may be a cache's
    CHECK(ahead.seconds_ahead(1005, 1005 + skew) == 0);
    CHECK(ahead.seconds_ahead(1015, 1015 + skew) == skew);
    // The answers' delay varies; the same scrape keeps its time.
    CHECK(ahead.seconds_ahead(1030, 1031.5 + skew) == skew);
  }
}

TEST_CASE("the delay of answers is no skew") {
  ClockSkew ahead;
  for (int round = 0; round < 20; ++round)
    CHECK(ahead.seconds_ahead(1000 + 15 * round, 1000.1 + 15 * round + 0.09 * round) == 0);
}

TEST_CASE("answers from a cache are old, not skewed, however often they are asked for") {
  ClockSkew ahead;
  for (int second = 0; second < 300; ++second) CHECK(ahead.seconds_ahead(1000, 1000 + second) == 0);
}

TEST_CASE("a clock that is set right is believed again") {
  ClockSkew ahead;
  double own = 5000;
  for (int round = 0; round < 3; ++round, own += 15) ahead.seconds_ahead(own - 600, own);
  CHECK(ahead.seconds_ahead(own - 600, own) == 600);
  own -= 600;
  for (int round = 0; round < 3; ++round, own += 15) ahead.seconds_ahead(own, own);
  CHECK(ahead.seconds_ahead(own, own) == 0);
}

}  // namespace
}  // namespace sluice::observe
