#include "scheduler/policies/pecan_tuner.h"

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
BatchTime needing(double need, double local_worth = 1) {
  return [=](PecanTarget t) { return 1 / std::min(need, t.remote + local_worth * t.local); };
}

// Every report is made with the configuration asked for, until the tuner is stable.
std::vector<PecanTarget> follow(PecanTuner& tuner, const BatchTime& batch_seconds, int at_most = 200) {
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
  CHECK(follow(tuner, needing(3)) == want);
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
      {"local workers cover it", needing(3), {0, 10}},
      {"local workers cover half of it", needing(20), {10, 10}},
      {"ten weak local workers replace one remote worker", needing(6, 0.1), {5, 10}},
      {"every local worker beyond the second slows the trainer down", hurt_by_local, {0, 4}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    PecanTuner tuner;
    follow(tuner, row.batch_seconds);
    CHECK(tuner.state() == State::kStable);
    CHECK(tuner.target() == row.want);
  }
}

TEST_CASE("a trainer that costs nothing lets every remote worker go") {
  PecanTuner tuner({.client_cost_per_hour = 0, .worker_cost_per_hour = 1});
  follow(tuner, needing(20, 0.1));
  CHECK(tuner.target().remote < 20);
}

TEST_CASE("all local workers from the start: remote ones are added while they help, and taken away while that saves") {
  PecanTuner tuner({.start_local = 10});
  REQUIRE(tuner.target() == PecanTarget{1, 10});
  const std::vector<PecanTarget> want{{2, 10}, {3, 10}, {4, 10}, {5, 10}, {4, 10}, {3, 10}, {4, 10}};
  CHECK(follow(tuner, needing(14)) == want);
  CHECK(tuner.state() == State::kStable);
}

TEST_CASE("stable is final") {
  PecanTuner tuner;
  follow(tuner, needing(3));
  const PecanTarget settled = tuner.target();
  for (int i = 0; i < 30; ++i) CHECK(tuner.report({settled.remote, settled.local, 100.0, true}) == settled);
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

}  // namespace
}  // namespace sluice::scheduler
