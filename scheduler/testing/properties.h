// The common part of the property tests on random clusters: a seed per case, and a configuration per seed.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <rapidcheck.h>

#include "scheduler/decide/decide.h"
#include "scheduler/model/config.h"
#include "scheduler/model/plan.h"
#include "scheduler/model/progress.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {

constexpr Objective kObjectives[] = {Objective::kBalanced, Objective::kThroughput, Objective::kCompletionTime,
                                     Objective::kFair, Objective::kCost};

// One configuration per seed: all objectives.
inline Config some_config(unsigned seed) {
  Config config;
  config.objective = kObjectives[seed % 5];
  return config;
}

// The cluster once the next plan stops no worker: one that makes way leaves its CPU and its money to a later plan.
// None: plans still stop workers after five rounds, or ten by price: one of 400 random clusters has taken six.
inline std::optional<ClusterSnapshot> settled(ClusterSnapshot snapshot, const Config& config) {
  const int rounds = config.objective == Objective::kCost ? 10 : 5;
  for (int round = 0; round < rounds; ++round) {
    const Plan plan = decide(snapshot, config);
    if (std::all_of(plan.jobs.begin(), plan.jobs.end(), [](const JobPlan& job) { return job.victims.empty(); }))
      return snapshot;
    snapshot = applied(std::move(snapshot), plan);
  }
  return std::nullopt;
}

// A failure prints the seed.
inline void property(const std::string& name, const std::function<void(unsigned seed)>& body) {
  CHECK(rc::check(name, [&] {
    const auto seed = *rc::gen::arbitrary<unsigned>();
    RC_LOG() << "seed " << seed;
    body(seed);
  }));
}

// Another job's claim or a limit binds, not the job's own need.
inline bool is_limit(Reason reason) {
  return reason == Reason::kCpu || reason == Reason::kQuota || reason == Reason::kBudget ||
         reason == Reason::kNetwork || reason == Reason::kSpread;
}

inline std::int64_t local_of(const JobPlan& plan) {
  std::int64_t sum = 0;
  for (const LocalCpu& local : plan.local) sum += local.request_millicores;
  return sum;
}

// The job's progress, as far as it is wanted. No job asks for speed beyond the flat part of the curve: the part of it
// that a last whole worker brings is chance. So is whether a worker was started for less than half of its use.
inline double wanted_progress(const JobPlan& plan, const Job& job, const Config& config) {
  const Estimate& e = plan.estimate;
  const double worker_ratio = worker_cores(job) * e.efficiency() / std::max(e.knee_cores, 1e-3);
  const double flat = supply_ratio_at_slope(config.min_slope, config.softmin_exponent);
  const double enough = std::max(1.0, flat - worker_ratio / 2);
  return progress(std::min(plan.planned_supply_ratio, enough), config.softmin_exponent);
}

}  // namespace sluice::scheduler::testing
