#include "scheduler/simulator/policies/pecan_tuner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {

static std::ostream& operator<<(std::ostream& out, const PecanTarget& target) {
  return out << target.remote << " remote + " << target.local << " local";
}

namespace {

using State = PecanTuner::State;
using BatchTime = std::function<double(PecanTarget)>;

// A job that needs `need` workers' worth of work; a local worker does as much as `local_worth` remote ones.
BatchTime batch_time_at(double need, double local_worth = 1) {
  return [=](PecanTarget t) { return 1 / std::min(need, t.remote + local_worth * t.local); };
}

// Every report is made with the configuration asked for, until the tuner is stable.
std::vector<PecanTarget> follow_pecan(PecanTuner& tuner, const BatchTime& batch_seconds, int at_most = 200) {
  std::vector<PecanTarget> targets;
  for (int i = 0; i < at_most && tuner.state() != State::kStable; ++i) {
    const PecanTarget in_force = tuner.target();
    targets.push_back(tuner.report({in_force.remote, in_force.local, batch_seconds(in_force), true}));
  }
  return targets;
}

TEST_CASE("remote first, then local to the limit, then remote away") {
  PecanTuner tuner;
  const std::vector<PecanTarget> want{
      {2, 0},  {3, 0},  {4, 0},                                                     // the fourth brings nothing
      {3, 1},  {3, 2},  {3, 3},  {3, 4},  {3, 5},  {3, 6}, {3, 7}, {3, 8}, {3, 9},  // local ones do no harm
      {3, 10}, {2, 10}, {1, 10}, {0, 10}, {0, 10},
  };
  CHECK(follow_pecan(tuner, batch_time_at(3)) == want);
  CHECK(tuner.state() == State::kStable);
}

TEST_CASE("where it settles, by situation") {
  struct Row {
    const char* situation;
    BatchTime batch_seconds;
    PecanTarget want;
  };
  const BatchTime hurt_by_local = [](PecanTarget t) {
    return 1 / (std::min(4, t.remote + t.local) * std::pow(0.8, std::max(0, t.local - 2)));
  };
  const Row rows[] = {
      {"local workers cover it", batch_time_at(3), {0, 10}},
      {"local workers cover half of it", batch_time_at(20), {10, 10}},
      {"ten weak local workers replace one remote worker", batch_time_at(6, 0.1), {5, 10}},
      {"every local worker beyond the second slows the trainer down", hurt_by_local, {0, 4}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    PecanTuner tuner;
    follow_pecan(tuner, row.batch_seconds);
    CHECK(tuner.state() == State::kStable);
    CHECK(tuner.target() == row.want);
  }
}

TEST_CASE("a trainer that costs nothing lets every remote worker go") {
  PecanTuner tuner({.client_cost_per_hour = 0, .worker_cost_per_hour = 1});
  follow_pecan(tuner, batch_time_at(20, 0.1));
  CHECK(tuner.target().remote < 20);
}

TEST_CASE("all local workers from the start: remote ones are added while they help, and taken away while that saves") {
  PecanTuner tuner({.start_local = 10});
  REQUIRE(tuner.target() == PecanTarget{1, 10});
  const std::vector<PecanTarget> want{{2, 10}, {3, 10}, {4, 10}, {5, 10}, {4, 10}, {3, 10}, {4, 10}};
  CHECK(follow_pecan(tuner, batch_time_at(14)) == want);
  CHECK(tuner.state() == State::kStable);
}

TEST_CASE("stable is final") {
  PecanTuner tuner;
  follow_pecan(tuner, batch_time_at(3));
  const PecanTarget settled = tuner.target();
  for (int i = 0; i < 30; ++i) CHECK(tuner.report({settled.remote, settled.local, 100.0, true}) == settled);
  // Nor does a worker that is lost, or that is there too long, set it going again.
  CHECK(tuner.report({settled.remote + 1, settled.local, 100.0, true}) == settled);
  CHECK(tuner.report({settled.remote, settled.local - 1, 100.0, false}) == settled);
  CHECK(tuner.state() == State::kStable);
}

TEST_CASE("a target that is not in effect, by situation") {
  struct Row {
    const char* situation;
    PecanReport report;
    PecanTarget want;
    State want_state;
  };
  const Row rows[] = {
      {"the worker is still starting", {1, 0, 1.0, true}, {2, 0}, State::kOnlyRemote},
      {"no remote worker is free: go on locally", {1, 0, 1.0, false}, {1, 0}, State::kStable},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    PecanTuner tuner;
    REQUIRE(tuner.report({1, 0, 1.0, true}) == PecanTarget{2, 0});
    CHECK(tuner.report(row.report) == row.want);
    CHECK(tuner.state() == row.want_state);
  }
}

TEST_CASE("the pool runs dry while climbing: local workers are tried next to what there is") {
  PecanTuner tuner;
  tuner.report({1, 0, 1.0, true});
  tuner.report({2, 0, 0.5, true});
  REQUIRE(tuner.target() == PecanTarget{3, 0});
  CHECK(tuner.report({2, 0, 0.5, false}) == PecanTarget{2, 1});
  CHECK(tuner.state() == State::kIncreasingLocal);
}

TEST_CASE("a local worker that does not leave is built upon") {
  PecanTuner tuner;
  tuner.report({1, 0, 1.0, true});
  tuner.report({2, 0, 1.0, true});
  tuner.report({1, 1, 1.0, true});
  REQUIRE(tuner.target() == PecanTarget{1, 2});
  REQUIRE(tuner.report({1, 2, 1.2, true}) == PecanTarget{0, 1});  // harm
  CHECK(tuner.report({0, 2, 1.2, true}) == PecanTarget{0, 3});
  // Up to the last one; there is no remote worker left to take away.
  follow_pecan(tuner, [](PecanTarget) { return 1.2; });
  CHECK(tuner.target() == PecanTarget{0, 10});
  CHECK(tuner.state() == State::kStable);
}

TEST_CASE("a wild report is discarded") {
  PecanTuner tuner;
  tuner.report({1, 0, 1.0, true});
  CHECK(tuner.report({2, 0, 2.4, true}) == PecanTarget{2, 0});
  CHECK(tuner.report({2, 0, 0.5, true}) == PecanTarget{3, 0});
}

TEST_CASE("limits hold whatever is reported") {
  PecanTuner tuner({.max_local = 3, .max_remote = 5});
  double speed = 1;
  for (int i = 0; i < 60; ++i) {
    const PecanTarget t = tuner.target();
    tuner.report({t.remote, t.local, 1 / (speed *= 1.2), true});
    CHECK(tuner.target().remote <= 5);
    CHECK(tuner.target().local <= 3);
    CHECK(tuner.target().remote >= 0);
  }
}

// A report for the configuration asked for.
PecanTarget next(PecanTuner& tuner, double batch_seconds) {
  return tuner.report({tuner.target().remote, tuner.target().local, batch_seconds, true});
}

TEST_CASE("the climb with remote workers, by what the third brought") {
  struct Row {
    const char* situation;
    double batch_seconds;  // with three; half a second with two
    int max_remote;
    PecanTarget want;
    State want_state;
  };
  const Row rows[] = {
      {"3.1 %: one more", 0.4845, 20, {4, 0}, State::kOnlyRemote},
      {"2.9 %: back to two, and the first local one", 0.4855, 20, {2, 1}, State::kIncreasingLocal},
      {"nothing", 0.5, 20, {2, 1}, State::kIncreasingLocal},
      {"it was the last that is allowed, and brought much: it stays", 0.3, 3, {3, 1}, State::kIncreasingLocal},
      // As in the release: at the limit it is not given back here; taking remote ones away comes later.
      {"it was the last that is allowed, and brought nothing: it stays", 0.5, 3, {3, 1}, State::kIncreasingLocal},
      {"31 % slower than a second: noise, the same again", 1.16, 20, {3, 0}, State::kOnlyRemote},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    PecanTuner tuner({.max_remote = row.max_remote});
    REQUIRE(next(tuner, 1.0) == PecanTarget{2, 0});
    REQUIRE(next(tuner, 0.5) == PecanTarget{3, 0});
    CHECK(next(tuner, row.batch_seconds) == row.want);
    CHECK(tuner.state() == row.want_state);
  }
}

TEST_CASE("local workers are added up to a tenth of harm, counted from the step before") {
  struct Row {
    const char* situation;
    double batch_seconds;  // with two local workers; half a second with one
    PecanTarget want;
    State want_state;
  };
  const Row rows[] = {
      {"9 % slower: one more", 0.545, {2, 3}, State::kIncreasingLocal},
      {"11 % slower: back to one local, and one remote less", 0.555, {1, 1}, State::kDecreasingRemote},
      {"faster: one more", 0.3, {2, 3}, State::kIncreasingLocal},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    PecanTuner tuner;
    next(tuner, 1.0);
    next(tuner, 0.5);
    REQUIRE(next(tuner, 0.5) == PecanTarget{2, 1});
    REQUIRE(next(tuner, 0.5) == PecanTarget{2, 2});
    CHECK(next(tuner, row.batch_seconds) == row.want);
    CHECK(tuner.state() == row.want_state);
  }
}

TEST_CASE("the first local worker does harm: nothing was gained, and that is the end") {
  PecanTuner tuner;
  next(tuner, 1.0);
  next(tuner, 0.5);
  REQUIRE(next(tuner, 0.5) == PecanTarget{2, 1});
  CHECK(next(tuner, 0.6) == PecanTarget{2, 0});
  CHECK(tuner.state() == State::kStable);
}

// A trainer for 4 an hour, workers for 1; one local worker at most, so that remote ones go from three on.
PecanTuner before_removals() {
  PecanTuner tuner({.max_local = 1, .max_remote = 3, .client_cost_per_hour = 4, .worker_cost_per_hour = 1});
  next(tuner, 1.0);
  next(tuner, 0.5);
  next(tuner, 0.5);
  REQUIRE(next(tuner, 0.5) == PecanTarget{2, 1});
  REQUIRE(tuner.state() == State::kDecreasingRemote);
  return tuner;
}

TEST_CASE("a remote worker less pays while the hours it costs are worth less than its price") {
  struct Row {
    const char* situation;
    std::vector<double> batch_seconds;  // with two, one and no remote workers; half a second with three
    PecanTarget want;
    State want_state;
  };
  const Row rows[] = {
      // Two are left, 6 an hour: a sixth slower is the price of one.
      {"16 % slower with two: one less", {0.58}, {1, 1}, State::kDecreasingRemote},
      {"17 % slower with two: back to three, where it came from", {0.585}, {3, 1}, State::kStable},
      // One is left, 5 an hour: a fifth.
      {"then 19 % with one", {0.58, 0.69}, {0, 1}, State::kDecreasingRemote},
      {"then 21 %: back to two; there are no more local ones to try", {0.58, 0.70}, {2, 1}, State::kStable},
      // None is left, 4 an hour: a quarter.
      {"then 24 % without any: there is nothing left to take", {0.58, 0.69, 0.855}, {0, 1}, State::kStable},
      {"then 26 %: the last one comes back", {0.58, 0.69, 0.87}, {1, 1}, State::kStable},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    PecanTuner tuner = before_removals();
    for (const double batch_seconds : row.batch_seconds) next(tuner, batch_seconds);
    CHECK(tuner.target() == row.want);
    CHECK(tuner.state() == row.want_state);
  }
}

TEST_CASE("local and remote in turns, until a turn changes nothing") {
  PecanTuner tuner({.max_local = 3, .max_remote = 2, .client_cost_per_hour = 4, .worker_cost_per_hour = 1});
  struct Step {
    double batch_seconds;
    PecanTarget want;
    State want_state;
  };
  const Step steps[] = {
      {1.0, {2, 0}, State::kOnlyRemote},
      {0.5, {2, 1}, State::kIncreasingLocal},  // no third one is allowed
      {0.5, {2, 2}, State::kIncreasingLocal},
      {0.6, {1, 1}, State::kDecreasingRemote},  // the second local one did harm
      {0.55, {0, 1}, State::kDecreasingRemote},
      {0.9,
       {1, 2},
       State::kIncreasingLocal},  // the last remote one was worth its price: it comes back, with a local one
      {0.8, {1, 3}, State::kIncreasingLocal},
      {0.9, {0, 2}, State::kDecreasingRemote},  // harm again: two local ones, one more than last time
      {2.0, {1, 2}, State::kStable},            // and the remote one is needed: as before this turn
  };
  for (const Step& step : steps) {
    INFO(step.batch_seconds << " s");
    CHECK(next(tuner, step.batch_seconds) == step.want);
    CHECK(tuner.state() == step.want_state);
  }
}

TEST_CASE("the comparison is with the last report of another configuration, over at most twenty reports") {
  PecanTuner tuner;
  REQUIRE(next(tuner, 1.0) == PecanTarget{2, 0});
  // Wild ones change nothing, and push the first one out.
  for (int i = 0; i < 19; ++i) REQUIRE(next(tuner, 3.0) == PecanTarget{2, 0});
  REQUIRE(tuner.state() == State::kOnlyRemote);
  CHECK(next(tuner, 0.5) == PecanTarget{2, 0});
  CHECK(tuner.state() == State::kStable);
}

}  // namespace
}  // namespace sluice::scheduler
