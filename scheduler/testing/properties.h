// What the property tests on random clusters share: a seed per case, and a configuration per seed.
#pragma once

#include <functional>
#include <string>

#include <rapidcheck.h>

#include "scheduler/config.h"
#include "scheduler/plan.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {

constexpr Objective kObjectives[] = {Objective::kBalanced, Objective::kThroughput, Objective::kCompletionTime,
                                     Objective::kFair, Objective::kCost};

// One configuration per seed: all objectives, both ways to carry out a plan, both orders of admission.
inline Config some_config(unsigned seed) {
  Config config;
  config.objective = kObjectives[seed % 5];
  config.replaces_workers = seed / 5 % 2 == 0;
  config.admit = seed / 10 % 2 == 0 ? Admit::kFirstCome : Admit::kShortestFirst;
  return config;
}

// The same, and the plan may move workers.
inline Config movable(unsigned seed) {
  Config config = some_config(seed);
  config.replaces_workers = true;
  return config;
}

// A failure prints the seed.
inline void property(const std::string& name, const std::function<void(unsigned seed)>& body) {
  CHECK(rc::check(name, [&] {
    const auto seed = *rc::gen::arbitrary<unsigned>();
    RC_LOG() << "seed " << seed;
    body(seed);
  }));
}

// Somebody else's claim stands in the way, or a limit, not the job's own need.
inline bool is_limit(Reason reason) {
  return reason == Reason::kCpu || reason == Reason::kQuota || reason == Reason::kBudget || reason == Reason::kNetwork;
}

inline std::int64_t local_of(const JobPlan& plan) {
  std::int64_t sum = 0;
  for (const LocalCpu& local : plan.local) sum += local.request_millicores;
  return sum;
}

}  // namespace sluice::scheduler::testing
