#include "scheduler/model/tracked.h"

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

const Config kDefaults;
using Step = Tracked::Step;

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
    const Step step = tracked.take(8.6 + 0.01 * count, kDefaults);
    REQUIRE(step != Step::kChanged);
    CAPTURE(count);
    CHECK((step == Step::kRefined) == (count == 2 || count == 4 || count == 8 || count == 16));
    refinements += step == Step::kRefined ? 1 : 0;
    if (count == 16) CHECK(tracked.published == Approx((9 + 15 * 8.6 + 0.01 * 135) / 16).epsilon(1e-4));
  }
  CHECK(refinements <= 4);
}

TEST_CASE("the same value again refines nothing") {
  Tracked tracked = Tracked::starting_at(8);
  for (int i = 0; i < 100; ++i) CHECK(tracked.take(8, kDefaults) == Step::kKept);
}

TEST_CASE("another truth is noticed although a thousand values spoke for the old one") {
  Tracked tracked = Tracked::starting_at(8);
  for (int i = 0; i < 1000; ++i) tracked.take(8, kDefaults);
  CHECK(tracked.take(16, kDefaults) == Step::kChanged);
  CHECK(tracked.published == Approx(8 * std::pow(2, 0.2)));  // a fifth of the way
  int windows = 1;
  while (tracked.published < 0.9 * 16) tracked.take(16, kDefaults), ++windows;
  CHECK(windows <= 12);
  for (int i = 0; i < 64; ++i) tracked.take(16, kDefaults);
  CHECK(tracked.published == Approx(16).epsilon(0.02));
}

TEST_CASE("a first value that was an outlier is outweighed at once, not by a fifth at a time") {
  Tracked tracked = Tracked::starting_at(3);
  tracked.take(8, kDefaults);
  CHECK(tracked.published == Approx(std::sqrt(3 * 8.0)));
  for (int i = 0; i < 6; ++i) tracked.take(8, kDefaults);
  CHECK(tracked.published == Approx(8).epsilon(0.12));
}

TEST_CASE("noise of 9 %: the published value ends within 3 % of the truth, after few moves") {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 0.09);
    Tracked tracked = Tracked::starting_at(10 * std::exp(noise(random)));
    int moves = 0;
    for (int i = 0; i < 500; ++i) moves += tracked.take(10 * std::exp(noise(random)), kDefaults) != Step::kKept ? 1 : 0;
    CHECK(tracked.published == Approx(10).epsilon(0.03));
    CHECK(moves <= 12);
  }
}

// How often a series of so many values around 10 is published anew.
int moves_of(Tracked& tracked, unsigned seed, double noise, int values) {
  std::mt19937 random(seed);
  std::normal_distribution<double> deviation(0, noise);
  int moves = 0;
  for (int i = 0; i < values; ++i)
    moves += tracked.take(10 * std::exp(deviation(random)), kDefaults) != Step::kKept ? 1 : 0;
  return moves;
}

TEST_CASE("the noisier a series, the more it takes to believe in another truth: noise alone moves nothing") {
  double error = 0;
  int moves = 0;
  constexpr unsigned kSeeds = 50;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    // A knee of which every figure has 30 % of noise.
    Tracked tracked = Tracked::starting_at(10);
    moves += moves_of(tracked, seed, 0.52, 500);
    error += std::abs(std::log(tracked.published / 10));
  }
  // By a threshold of 10 % alone: 448 moves each, and 22 % off.
  CHECK(moves / kSeeds <= 12);
  CHECK(error / kSeeds <= 0.06);
}

TEST_CASE("a factor of two is followed however noisy the series is, the sooner the calmer it is") {
  struct Row {
    double noise;
    int most_windows;  // on average, until published within 15 % of the new truth
  };
  for (const Row& row : {Row{0, 5}, Row{0.09, 7}, Row{0.3, 8}, Row{0.52, 16}}) {
    CAPTURE(row.noise);
    int windows = 0;
    constexpr unsigned kSeeds = 100;
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
      std::mt19937 random(seed);
      std::normal_distribution<double> deviation(0, 1);
      Tracked tracked = Tracked::starting_at(5);
      for (int i = 0; i < 100; ++i) tracked.take(5 * std::exp(row.noise * deviation(random)), kDefaults);
      for (; std::abs(std::log(tracked.published / 10)) > 0.15; ++windows) {
        REQUIRE(windows < 10'000);
        tracked.take(10 * std::exp(row.noise * deviation(random)), kDefaults);
      }
    }
    CHECK(windows <= row.most_windows * static_cast<int>(kSeeds));
  }
}

TEST_CASE("noise is learnt from the values, and is no matter of their unit or level") {
  Tracked tracked = Tracked::starting_at(10);
  moves_of(tracked, 1, 0.3, 300);
  CHECK(tracked.noise == Approx(0.32).epsilon(0.3));  // against an average that moves a little itself
  const double before = tracked.noise;
  tracked.rescale(1000);
  CHECK(tracked.noise == before);
}

TEST_CASE("a job that runs for weeks: the counter stands still, and a change is noticed as ever") {
  Tracked tracked = Tracked::starting_at(8);
  int moves = 0;
  for (int i = 0; i < 70'000; ++i) moves += tracked.take(i % 2 == 0 ? 7.9 : 8.1, kDefaults) == Step::kKept ? 0 : 1;
  CHECK(moves <= 16);
  CHECK(tracked.count == 1 << 16);
  CHECK(tracked.published == Approx(8).epsilon(0.001));
  CHECK(tracked.take(8.05, kDefaults) == Step::kKept);
  int windows = 1;
  while (tracked.published < 0.9 * 16) tracked.take(16, kDefaults), ++windows;
  CHECK(windows <= 12);
}

TEST_CASE("without smoothing and threshold every value is believed at once") {
  Config config;
  config.smoothing = 1;
  config.publish_threshold = 0;
  config.publish_sigmas = 0;
  Tracked tracked = Tracked::starting_at(8);
  for (const double value : {9.0, 3.0, 3.5, 100.0}) {
    CHECK(tracked.take(value, config) == Step::kChanged);
    CHECK(tracked.published == value);
  }
}

TEST_CASE("another unit changes the figures, and not what is known") {
  Tracked tracked = Tracked::starting_at(8);
  tracked.take(8.4, kDefaults);
  tracked.rescale(0.5);
  const double half_of_both = 0.5 * std::sqrt(8 * 8.4);
  CHECK(tracked.recent == Approx(half_of_both));
  CHECK(tracked.mean == Approx(half_of_both));
  CHECK(tracked.published == Approx(half_of_both));
  CHECK(tracked.count == 2);
}

// The same from the header's words alone, with every value kept.
struct Recorded {
  std::vector<double> since_change;  // logarithms
  double recent, published;
  double noise = 0;
  int values = 1;

  Step take(double value) {
    since_change.push_back(std::log(value));
    const auto count = static_cast<double>(since_change.size());
    const double weight = std::max(kDefaults.smoothing, 1 / count);
    const double explained = kDefaults.publish_sigmas * noise * std::sqrt(weight / (2 - weight));
    const double part = 1.0 / std::min(++values, 40);
    noise = (1 - part) * noise + part * 1.2533 * std::abs(std::log(value) - std::log(recent));
    recent = std::exp((1 - weight) * std::log(recent) + weight * std::log(value));
    const double off = std::max(recent / published, published / recent);
    if (off > std::max(1 + kDefaults.publish_threshold, std::exp(explained))) {
      since_change = {std::log(recent)};
      published = recent;
      return Step::kChanged;
    }
    const double exponent = std::log2(count);
    const double mean = std::exp(std::accumulate(since_change.begin(), since_change.end(), 0.0) / count);
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
    Recorded recorded{{std::log(truth)}, truth, truth};
    for (int i = 0; i < 300; ++i) {
      if (random() % 60 == 0) truth *= std::exp(std::normal_distribution<double>(0, 0.5)(random));
      const double value = truth * std::exp(std::normal_distribution<double>(0, noise)(random));
      CAPTURE(i);
      REQUIRE(tracked.take(value, kDefaults) == recorded.take(value));
      REQUIRE(tracked.published == Approx(recorded.published));
      REQUIRE(tracked.recent == Approx(recorded.recent));
    }
  }
}

}  // namespace
}  // namespace sluice::scheduler
