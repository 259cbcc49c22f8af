#include "scheduler/tracked.h"

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

using Step = Tracked::Step;
const Config kConfig;

TEST_CASE("the first value is all there is") {
  const Tracked tracked = Tracked::starting_at(8);
  CHECK(tracked.published == 8);
  CHECK(tracked.mean == 8);
  CHECK(tracked.count == 1);
}

TEST_CASE("a steady truth is published as a mean, at 2, 4, 8 and 16 values and not between") {
  Tracked tracked = Tracked::starting_at(9);
  int refinements = 0;
  for (int count = 2; count <= 20; ++count) {
    const Step step = tracked.take(8.6 + 0.01 * count, kConfig);
    REQUIRE(step != Step::kChanged);
    CAPTURE(count);
    CHECK((step == Step::kRefined) == (count == 2 || count == 4 || count == 8 || count == 16));
    refinements += step == Step::kRefined ? 1 : 0;
    if (count == 16) CHECK(tracked.published == Approx((9 + 15 * 8.6 + 0.01 * 135) / 16));
  }
  CHECK(refinements <= 4);
}

TEST_CASE("the same value again refines nothing") {
  Tracked tracked = Tracked::starting_at(8);
  for (int i = 0; i < 100; ++i) CHECK(tracked.take(8, kConfig) == Step::kKept);
}

TEST_CASE("another truth is noticed although a thousand values spoke for the old one") {
  Tracked tracked = Tracked::starting_at(8);
  for (int i = 0; i < 1000; ++i) tracked.take(8, kConfig);
  CHECK(tracked.take(16, kConfig) == Step::kChanged);
  CHECK(tracked.published == Approx(9.6));  // a fifth of the way
  int windows = 1;
  while (tracked.published < 0.9 * 16) tracked.take(16, kConfig), ++windows;
  CHECK(windows <= 12);
  for (int i = 0; i < 64; ++i) tracked.take(16, kConfig);
  CHECK(tracked.published == Approx(16).epsilon(0.02));
}

TEST_CASE("a first value that was an outlier is outweighed at once, not by a fifth at a time") {
  Tracked tracked = Tracked::starting_at(3);
  tracked.take(8, kConfig);
  CHECK(tracked.published == Approx(5.5));
  for (int i = 0; i < 6; ++i) tracked.take(8, kConfig);
  CHECK(tracked.published == Approx(8).epsilon(0.1));
}

TEST_CASE("noise of 9 %: the published value ends within 3 % of the truth, after few moves") {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 0.09);
    Tracked tracked = Tracked::starting_at(10 * std::exp(noise(random)));
    int moves = 0;
    for (int i = 0; i < 500; ++i) moves += tracked.take(10 * std::exp(noise(random)), kConfig) != Step::kKept ? 1 : 0;
    CHECK(tracked.published == Approx(10).epsilon(0.03));
    CHECK(moves <= 12);
  }
}

TEST_CASE("a job that runs for weeks: the counter stands still, and a change is noticed as ever") {
  Tracked tracked = Tracked::starting_at(8);
  int moves = 0;
  for (int i = 0; i < 70'000; ++i) moves += tracked.take(i % 2 == 0 ? 7.9 : 8.1, kConfig) == Step::kKept ? 0 : 1;
  CHECK(moves <= 16);
  CHECK(tracked.count == 1 << 16);
  CHECK(tracked.published == Approx(8).epsilon(0.001));
  CHECK(tracked.take(8.05, kConfig) == Step::kKept);
  int windows = 1;
  while (tracked.published < 0.9 * 16) tracked.take(16, kConfig), ++windows;
  CHECK(windows <= 12);
}

TEST_CASE("without smoothing and threshold every value is believed at once") {
  Config config;
  config.smoothing = 1;
  config.publish_threshold = 0;
  Tracked tracked = Tracked::starting_at(8);
  for (const double value : {9.0, 3.0, 3.5, 100.0}) {
    CHECK(tracked.take(value, config) == Step::kChanged);
    CHECK(tracked.published == value);
  }
}

TEST_CASE("another unit changes the figures, and not what is known") {
  Tracked tracked = Tracked::starting_at(8);
  tracked.take(8.4, kConfig);
  tracked.rescale(0.5);
  CHECK(tracked.recent == Approx(4.1));
  CHECK(tracked.mean == Approx(4.1));
  CHECK(tracked.published == Approx(4.1));
  CHECK(tracked.count == 2);
}

// The same from the header's words alone, with every value kept.
struct Recorded {
  std::vector<double> since_change;
  double recent, published;

  Step take(double value) {
    since_change.push_back(value);
    const auto count = static_cast<double>(since_change.size());
    const double weight = std::max(kConfig.smoothing, 1 / count);
    recent = (1 - weight) * recent + weight * value;
    if (std::abs(recent / published - 1) > kConfig.publish_threshold) {
      since_change = {recent};
      published = recent;
      return Step::kChanged;
    }
    const double exponent = std::log2(count);
    const double mean = std::accumulate(since_change.begin(), since_change.end(), 0.0) / count;
    if (exponent != std::floor(exponent) || mean == published) return Step::kKept;
    published = mean;
    return Step::kRefined;
  }
};

TEST_CASE("whatever is measured: what is published is what the whole record of it says") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const double noise = 0.02 * (1 + seed % 8);
    double truth = 10;
    Tracked tracked = Tracked::starting_at(truth);
    Recorded recorded{{truth}, truth, truth};
    for (int i = 0; i < 300; ++i) {
      if (random() % 60 == 0) truth *= std::exp(std::normal_distribution<double>(0, 0.5)(random));
      const double value = truth * std::exp(std::normal_distribution<double>(0, noise)(random));
      CAPTURE(i);
      REQUIRE(tracked.take(value, kConfig) == recorded.take(value));
      REQUIRE(tracked.published == Approx(recorded.published));
      REQUIRE(tracked.recent == Approx(recorded.recent));
    }
  }
}

}  // namespace
}  // namespace sluice::scheduler
