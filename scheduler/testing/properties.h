// What the property tests on random clusters share: a seed per case, and a configuration per seed.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include <rapidcheck.h>

#include "scheduler/config.h"
#include "scheduler/plan.h"
#include "scheduler/progress.h"
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

// The job's progress, as far as it is wanted. Nobody asks for speed beyond where the curve is flat; what a last whole
// worker brings of it is chance, and so is whether one was worth it for less than half of what it brings.
inline double wanted_progress(const JobPlan& plan, const Job& job, const Config& config) {
  const Estimate& e = plan.estimate;
  const double worker_ratio = static_cast<double>(job.worker_millicores) * e.remote_rate_per_core /
                              e.local_rate_per_core / static_cast<double>(std::max<std::int64_t>(e.knee_millicores, 1));
  const double flat = supply_ratio_at_slope(config.min_slope, config.softmin_exponent);
  const double enough = std::max(1.0, flat - worker_ratio / 2);
  return progress(std::min(e.planned_supply_ratio, enough), config.softmin_exponent);
}

}  // namespace sluice::scheduler::testing
