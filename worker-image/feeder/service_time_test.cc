#include "worker-image/feeder/service_time.h"

#include "src/base/testing/catch.h"

namespace sluice::feeder {
namespace {

using std::chrono::seconds;

const Clock::TimePoint kStart{};

ServiceTime after(std::initializer_list<double> samples) {
  ServiceTime time;
  for (const double sample : samples) time.observe(sample, kStart);
  return time;
}

TEST_CASE("the mean of a steady executor is what it takes") {
  CHECK(after({0.1, 0.1, 0.1}).seconds() == Approx(0.1));
  CHECK(after({0.1}).late_factor() == Approx(kUnknownLateFactor));
  CHECK(after({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}).late_factor() == Approx(2).margin(0.01));
}

TEST_CASE("one outlier moves the mean by less than a factor of two, in either direction") {
  CHECK(after({0.1, 0.1, 100}).seconds() < 0.2);
  CHECK(after({0.1, 0.1, 0}).seconds() > 0.05);
}

TEST_CASE("a change that lasts is followed within a dozen samples") {
  ServiceTime time = after({0.1});
  for (int i = 0; i < 12; ++i) time.observe(5, kStart);
  CHECK(time.seconds() > 2.5);
  CHECK(time.seconds() <= 5);
}

TEST_CASE("an executor that varies may take longer before it is late") {
  const double varying = after({0.1, 0.3, 0.05, 0.2, 0.1, 0.4, 0.05}).late_factor();
  CHECK(varying > 4);
  CHECK(varying <= 8);
}

TEST_CASE("an old mean counts no more, and the next sample replaces it") {
  ServiceTime time;
  CHECK(!time.is_known(kStart));
  time.observe(5, kStart);
  CHECK(time.is_known(kStart + ServiceTime::kValid));
  const auto later = kStart + ServiceTime::kValid + seconds(1);
  CHECK(!time.is_known(later));
  time.observe(0.1, later);
  CHECK(time.seconds() == Approx(0.1));
}

TEST_CASE("what was given up counts as twice the time that it had, and never makes an executor faster") {
  ServiceTime time;
  time.observe_unfinished(1, kStart);
  CHECK(time.seconds() == Approx(2));
  time.observe_unfinished(0.5, kStart);
  CHECK(time.seconds() == Approx(2));
  time.observe_unfinished(4, kStart);
  CHECK(time.seconds() == Approx(8));
}

}  // namespace
}  // namespace sluice::feeder
