// Many runs of the simulation, on all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/fault_simulation/simulation.h"

namespace sluice::simulation {

struct Failure {
  FaultPlan plan;
  std::vector<std::string> violations;
};

struct CampaignResult {
  std::uint64_t runs = 0;
  std::uint64_t operator_writes = 0;
  double virtual_seconds = 0;
  std::vector<Failure> failures;  // in no order
};

inline constexpr std::size_t kMaxFailures = 20;

// Runs the plans `plan_at(0)`, `plan_at(1)`, ... until it has `count` of them or `max_failures` failures, or `enough`
// says so (asked between runs; may be null). Operators' log lines go nowhere.
CampaignResult run_campaign(std::uint64_t count, const std::function<FaultPlan(std::uint64_t)>& plan_at,
                            const std::function<bool()>& enough = nullptr, const RunOptions& options = {},
                            std::size_t max_failures = kMaxFailures);

// The plan without what it fails without as well: damages, kinds of fault, wrong clocks, a second operator. One run for
// each. A plan that does not fail stays as it is.
FaultPlan simplest_failing(FaultPlan plan, const std::function<bool(const FaultPlan&)>& fails);

// The file under operator/fault_simulation/scenarios that makes a failure a test.
std::string scenario_text(const Failure& failure);

}  // namespace sluice::simulation
