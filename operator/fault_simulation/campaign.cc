#include "operator/fault_simulation/campaign.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "src/base/logging.h"

namespace sluice::simulation {

CampaignResult run_campaign(std::uint64_t count, const std::function<FaultPlan(std::uint64_t)>& plan_at,
                            const std::function<bool()>& enough, const RunOptions& options, std::size_t max_failures) {
  set_log_sink([](std::string_view) {});
  CampaignResult result;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = 0;
  std::atomic<bool> stop = false;
  const auto work = [&] {
    while (!stop && !(enough && enough())) {
      const std::uint64_t index = next++;
      if (index >= count) return;
      const FaultPlan plan = plan_at(index);
      Outcome outcome = simulate_and_compare(plan, options);
      std::lock_guard lock(mutex);
      ++result.runs;
      result.operator_writes += static_cast<std::uint64_t>(outcome.operator_writes);
      result.virtual_seconds += outcome.seconds;
      if (outcome.violations.empty()) continue;
      result.failures.push_back({plan, std::move(outcome.violations)});
      stop = result.failures.size() >= max_failures;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  }
  set_log_sink(nullptr);
  return result;
}

FaultPlan simplest_failing(FaultPlan plan, const std::function<bool(const FaultPlan&)>& fails) {
  if (!fails(plan)) return plan;
  const auto try_without = [&](const std::function<void(FaultPlan&)>& leave_out) {
    FaultPlan simpler = plan;
    leave_out(simpler);
    if (simpler.to_json() != plan.to_json() && fails(simpler)) plan = std::move(simpler);
  };
  for (std::size_t index = plan.damages.size(); index-- > 0;)
    try_without([&](FaultPlan& simpler) { simpler.damages.erase(simpler.damages.begin() + std::ptrdiff_t(index)); });
  for (double FaultRates::*const rate : all_rates()) try_without([&](FaultPlan& simpler) { simpler.rates.*rate = 0; });
  try_without([](FaultPlan& simpler) { simpler.operator_skew_seconds = 0; });
  try_without([](FaultPlan& simpler) { simpler.node_skew_seconds = 0; });
  try_without([](FaultPlan& simpler) { simpler.operators = 1; });
  try_without([](FaultPlan& simpler) { simpler.stored_before = false; });
  return plan;
}

std::string scenario_text(const Failure& failure) {
  nlohmann::json scenario = failure.plan.to_json();
  scenario["found"] = failure.violations.front();
  return scenario.dump(2) + "\n";
}

}  // namespace sluice::simulation
