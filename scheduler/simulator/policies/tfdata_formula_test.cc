#include "scheduler/simulator/policies/tfdata_formula.h"

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

TEST_CASE("tf.data's optimal number of workers, by situation") {
  struct Row {
    const char* situation;
    std::vector<double> consumption, throughput;
    std::optional<int> want;
  };
  const Row rows[] = {
      {"no consumer has reported", {}, {5}, std::nullopt},
      {"no worker has reported", {5}, {}, std::nullopt},
      {"workers that deliver nothing", {5}, {0}, std::nullopt},
      {"exactly enough", {50}, {5, 5, 5}, 10},
      {"a little more", {50.1}, {5, 5, 5}, 11},
      {"consumers add up", {20, 30}, {5}, 10},
      {"workers average", {50}, {4, 6}, 10},
      {"at least one", {0.001}, {5}, 1},
      {"nothing consumed: still one", {0}, {5}, 1},
      {"a slow worker is an outlier, and taken for a median one", {100}, {10, 10, 10, 10, 0.1}, 10},
      {"a fast consumer is an outlier, too", {10, 10, 10, 10, 1000}, {10}, 5},
      {"two of a kind have no outlier", {10, 1000}, {10}, 101},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(tfdata_optimal_workers(row.consumption, row.throughput) == row.want);
  }
}

TEST_CASE("which rates are outliers: further than one deviation of a sample, both ends, and replaced by the median") {
  struct Row {
    const char* situation;
    std::vector<double> consumption;
    double want_sum;
  };
  const Row rows[] = {
      // Mean 11, deviation 3.6: 15 is out, 8 is not; over n instead of n - 1 it would be 2.9, and both were.
      {"three, one of them out", {8, 10, 15}, 28},
      {"three, one too low", {1, 10, 11}, 31},
      // Mean 26.5, deviation 49: of four the median is the third.
      {"of an even number the upper middle", {1, 2, 3, 100}, 9},
      {"exactly a deviation away stays", {9, 11, 9, 11, 10}, 50},
      {"all alike", {7, 7, 7}, 21},
      {"one alone", {7}, 7},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(tfdata_optimal_workers(row.consumption, {0.5}) == static_cast<int>(2 * row.want_sum));
    std::vector<double> backward(row.consumption.rbegin(), row.consumption.rend());
    CHECK(tfdata_optimal_workers(backward, {0.5}) == static_cast<int>(2 * row.want_sum));
  }
}

TEST_CASE("absurd rates still give a number of workers") {
  CHECK(tfdata_optimal_workers({1e300}, {1e-300}) == 1'000'000);
  CHECK(tfdata_optimal_workers({1e-300}, {1e300}) == 1);
}

}  // namespace
}  // namespace sluice::scheduler
