#include "scheduler/policies/tfdata_formula.h"

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

}  // namespace
}  // namespace sluice::scheduler
