#include "scheduler/simulator/policies/cachew_tuner.h"

#include <functional>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

using BatchTime = std::function<double(int)>;

// Seconds per batch of a job that n workers saturate.
BatchTime saturated_by(int n) {
  return [n](int workers) { return 1.0 / std::min(workers, n); };
}

// The targets after each of `reports` reports, every one made with the workers asked for.
std::vector<int> follow_cachew(CachewTuner& tuner, int reports, const BatchTime& batch_seconds,
                               double queue_depth = 4) {
  std::vector<int> targets;
  for (int i = 0; i < reports; ++i) {
    const int workers = tuner.target();
    targets.push_back(tuner.report({workers, batch_seconds(workers), queue_depth}));
  }
  return targets;
}

TEST_CASE("a new job climbs one worker at a time, and steps back from the first that brings nothing") {
  struct Row {
    const char* situation;
    BatchTime batch_seconds;
    std::vector<int> want;
  };
  const Row rows[] = {
      {"three workers saturate it", saturated_by(3), {2, 3, 4, 3, 3, 3}},
      {"one worker does", saturated_by(1), {2, 1, 1, 1}},
      {"each worker makes it slower", [](int workers) { return 1.0 * workers; }, {2, 1, 1}},
      {"the fourth brings 2.9 %", [](int w) { return w < 4 ? 1.0 / w : 0.971 / 3; }, {2, 3, 4, 3, 3}},
      {"the fourth brings 3.1 %", [](int w) { return w < 4 ? 1.0 / w : 0.969 / 3; }, {2, 3, 4, 5, 4, 4}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CachewTuner tuner;
    CHECK(follow_cachew(tuner, static_cast<int>(row.want.size()), row.batch_seconds) == row.want);
    CHECK_FALSE(tuner.scaling());
  }
}

TEST_CASE("ResNet-50's published epoch times, by number of workers: where the climb ends") {
  // Seconds per epoch with one worker, two, and so on, in two runs; reference plots of the artefact.
  const std::vector<double> first = {1735, 870, 645, 550, 510, 500, 495, 495};
  const std::vector<double> second = {1437, 697, 430, 388, 392, 391};
  struct Row {
    const char* situation;
    std::vector<double> epoch_seconds;
    double scale_up_above;
    std::vector<int> want;
  };
  const Row rows[] = {
      {"second run, 3 %: the fifth brings nothing", second, 0.03, {2, 3, 4, 5, 4}},
      {"second run, 7 %: the fourth brought a tenth", second, 0.07, {2, 3, 4, 5, 4}},
      {"second run, 10 %: the fourth brought just under", second, 0.10, {2, 3, 4, 3}},
      {"first run, 3 %: the sixth brings 2 %", first, 0.03, {2, 3, 4, 5, 6, 5}},
      {"first run, 7 %: the fifth brought 7.3 %", first, 0.07, {2, 3, 4, 5, 6, 5}},
      {"first run, 11 %: the fourth brought 15 %", first, 0.11, {2, 3, 4, 5, 4}},
      {"first run, 0.9 %: the seventh brought 1 %, the eighth nothing", first, 0.009, {2, 3, 4, 5, 6, 7, 8, 7}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CachewTuner tuner({.scale_up_above = row.scale_up_above});
    const auto batch_seconds = [&](int workers) { return row.epoch_seconds.at(workers - 1) / 1000; };
    CHECK(follow_cachew(tuner, static_cast<int>(row.want.size()), batch_seconds) == row.want);
    CHECK_FALSE(tuner.scaling());
  }
}

TEST_CASE("a job that needs more than 33 workers never gets them: the 34th brings less than 3 %") {
  CachewTuner tuner;
  follow_cachew(tuner, 100, saturated_by(60));
  CHECK(tuner.target() == 33);
  CachewTuner release({.scale_up_above = 0.07});
  follow_cachew(release, 100, saturated_by(60));
  CHECK(release.target() == 14);
}

TEST_CASE("reports from before a change is effective are waited out") {
  CachewTuner tuner;
  CHECK(tuner.report({1, 1.0, 4}) == 2);
  CHECK(tuner.report({1, 1.0, 4}) == 2);
  CHECK(tuner.report({2, 0.5, 4}) == 3);
}

TEST_CASE("a wild report is discarded, and the same number tried again") {
  CachewTuner tuner;
  CHECK(tuner.report({1, 1.0, 4}) == 2);
  CHECK(tuner.report({2, 2.3, 4}) == 2);  // 130 % slower: noise
  CHECK(tuner.scaling());
  CHECK(tuner.report({2, 0.5, 4}) == 3);
}

TEST_CASE("the number of workers never exceeds the maximum") {
  CachewTuner tuner({.max_workers = 5});
  const std::vector<int> targets = follow_cachew(tuner, 20, [](int workers) { return 1.0 / workers; });
  CHECK(*std::max_element(targets.begin(), targets.end()) == 5);
}

TEST_CASE("in stability, every eleventh report is compared with convergence") {
  struct Row {
    const char* situation;
    double batch_seconds, queue_depth;
    int want;
  };
  const Row rows[] = {
      {"nothing has changed", 1.0 / 3, 4, 3},           {"40 % more in the queue: still fine", 1.0 / 3, 5.6, 3},
      {"the queue is longer: one less", 1.0 / 3, 6, 2}, {"half as fast: one more", 2.0 / 3, 4, 4},
      {"a little slower: still fine", 1.4 / 3, 4, 3},   {"longer queue goes before slower batches", 2.0 / 3, 6, 2},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CachewTuner tuner;
    follow_cachew(tuner, 4, saturated_by(3));
    REQUIRE(tuner.target() == 3);
    for (int i = 0; i < 10; ++i) CHECK(tuner.report({3, row.batch_seconds, row.queue_depth}) == 3);
    CHECK(tuner.report({3, row.batch_seconds, row.queue_depth}) == row.want);
  }
}

TEST_CASE("going down continues while it costs nothing, and ends at the last harmless number") {
  CachewTuner tuner;
  follow_cachew(tuner, 7, saturated_by(6));
  REQUIRE(tuner.target() == 6);
  // The job has become cheaper: three workers would do, and the queue is long.
  for (int i = 0; i < 10; ++i) tuner.report({6, 1.0 / 3, 9});
  CHECK(follow_cachew(tuner, 5, saturated_by(3), 9) == std::vector<int>{5, 4, 3, 2, 3});
  CHECK_FALSE(tuner.scaling());
}

TEST_CASE("an empty queue at convergence gives no ratio to compare, so nothing is re-scaled") {
  CachewTuner tuner;
  follow_cachew(tuner, 4, saturated_by(3), 0);
  for (int i = 0; i < 30; ++i) CHECK(tuner.report({3, 5.0, 6}) == 3);
}

TEST_CASE("the last worker stays") {
  CachewTuner tuner;
  follow_cachew(tuner, 2, saturated_by(1));
  for (int i = 0; i < 40; ++i) CHECK(tuner.report({1, 1.0, 400}) == 1);
}

TEST_CASE("on the way down, by what the last removal cost") {
  struct Row {
    const char* situation;
    double batch_seconds;  // with five workers; a second with six
    int want;
    bool want_scaling;
  };
  const Row rows[] = {
      {"nothing", 1.0, 4, true},
      {"2.9 %", 1.029, 4, true},
      {"3.1 %: back, and settled", 1.031, 6, false},
      {"it even became faster", 0.5, 4, true},
      {"more than twice as slow: noise, once more", 2.21, 5, true},
      {"just less than that: back", 2.19, 6, false},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CachewTuner tuner;
    follow_cachew(tuner, 7, [](int w) { return 6.0 / std::min(w, 6); });
    REQUIRE(tuner.target() == 6);
    for (int i = 0; i < 11; ++i) tuner.report({6, 1.0, 9});
    REQUIRE(tuner.target() == 5);
    CHECK(tuner.report({5, row.batch_seconds, 9}) == row.want);
    CHECK(tuner.scaling() == row.want_scaling);
  }
}

TEST_CASE("convergence is compared with the report before the step back, not with that of the step") {
  // The queue was 4 long with three workers, and 9 with the fourth that brought nothing.
  const auto settled = [] {
    CachewTuner tuner;
    tuner.report({1, 1.0, 4});
    tuner.report({2, 0.5, 4});
    tuner.report({3, 1.0 / 3, 4});
    REQUIRE(tuner.report({4, 1.0 / 3, 9}) == 3);
    return tuner;
  };
  struct Row {
    const char* situation;
    double batch_seconds, queue_depth;
    int want;
  };
  const Row rows[] = {
      {"6 is half as much again as 4", 1.0 / 3, 6, 2},
      {"5.5 is not", 1.0 / 3, 5.5, 3},
      {"1.49 times the batch time", 1.49 / 3, 4, 3},
      {"1.51 times", 1.51 / 3, 4, 4},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CachewTuner tuner = settled();
    for (int i = 0; i < 10; ++i) REQUIRE(tuner.report({3, row.batch_seconds, row.queue_depth}) == 3);
    CHECK(tuner.report({3, row.batch_seconds, row.queue_depth}) == row.want);
  }
}

TEST_CASE("reports of another number of workers are no part of the ten; after a check ten more are waited for") {
  CachewTuner tuner;
  follow_cachew(tuner, 4, saturated_by(3));
  REQUIRE(tuner.target() == 3);
  const auto hold = [&](int reports, int workers, double queue_depth) {
    for (int i = 0; i < reports; ++i) CHECK(tuner.report({workers, 1.0 / 3, queue_depth}) == 3);
  };
  hold(9, 3, 9);
  hold(30, 2, 9);                             // one was lost, and is being replaced
  hold(1, 3, 9);                              // the tenth
  hold(1, 3, 4);                              // the eleventh is the one that counts, and it is as at convergence
  hold(10, 3, 9);                             // so a long queue is noticed only
  CHECK(tuner.report({3, 1.0 / 3, 9}) == 2);  // eleven reports later
}

TEST_CASE("more workers from stability go on while each brings more than 3 %, and end as the first climb does") {
  CachewTuner tuner;
  follow_cachew(tuner, 4, saturated_by(3));
  for (int i = 0; i < 11; ++i) tuner.report({3, 1.0, 4});  // three times as slow as it was
  REQUIRE(tuner.target() == 4);
  CHECK(follow_cachew(tuner, 3, [](int w) { return 3.0 / std::min(w, 5); }) == std::vector<int>{5, 6, 5});
  CHECK_FALSE(tuner.scaling());
}

TEST_CASE("the memory is twenty reports: then there is nothing left to compare a wild number with, and it stays") {
  CachewTuner tuner;
  REQUIRE(tuner.report({1, 1.0, 4}) == 2);
  for (int i = 0; i < 19; ++i) {
    CHECK(tuner.report({2, 2.3, 4}) == 2);
    CHECK(tuner.scaling());
  }
  CHECK(tuner.report({2, 2.3, 4}) == 2);
  CHECK_FALSE(tuner.scaling());
}

TEST_CASE("at its maximum a job that still gains asks for no more, and goes down when it needs less") {
  CachewTuner tuner({.max_workers = 3});
  CHECK(follow_cachew(tuner, 5, [](int w) { return 1.0 / w; }) == std::vector<int>{2, 3, 3, 3, 3});
  CHECK(tuner.scaling());
}

}  // namespace
}  // namespace sluice::scheduler
