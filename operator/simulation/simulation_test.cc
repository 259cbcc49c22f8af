// Sluice's control plane under faults. A failure prints the plan; `sluice-simulation --seed N` shows its trace, and
// the plan in a file under scenarios/ makes it a test for good.
#include "operator/simulation/simulation.h"

#include <filesystem>
#include <fstream>

#include "operator/simulation/campaign.h"
#include "operator/simulation/workload.h"
#include "src/base/testing/catch.h"

namespace sluice::simulation {
namespace {

void expect_no_failure(const CampaignResult& result) {
  for (const Failure& failure : result.failures)
    for (const std::string& violation : failure.violations)
      FAIL_CHECK(failure.plan.to_json().dump() << ": " << violation);
}

TEST_CASE("every workload ends as it should when nothing goes wrong, in whatever order things happen") {
  const auto& names = workload_names();
  expect_no_failure(run_campaign(names.size() * 4, [&](std::uint64_t index) {
    Plan plan = undisturbed(names[index % names.size()]);
    plan.seed = 1 + index;
    return plan;
  }));
}

TEST_CASE("the same plan gives the same run") {
  RunOptions options;
  options.trace = true;
  Plan plan = random_plan(7);
  plan.rates.crash_per_second = plan.rates.kill_pod_per_second = plan.rates.lose_answer = 0.02;
  const Outcome first = simulate(plan, options);
  const Outcome second = simulate(plan, options);
  CHECK(first.trace.size() > 100);
  CHECK(first.trace == second.trace);
}

TEST_CASE("thousands of seeds: whatever went wrong, the cluster ends as if nothing had") {
  expect_no_failure(run_campaign(SLUICE_SIMULATION_SEEDS, [](std::uint64_t index) { return random_plan(index + 1); }));
}

TEST_CASE("Sieve's patterns: every crash, every unobserved pair, every stale view") {
  std::vector<Plan> plans;
  for (const std::string& name : workload_names())
    for (Plan& plan : sieve_plans(name)) plans.push_back(std::move(plan));
  CHECK(plans.size() > 800);
  const std::uint64_t stride = SLUICE_SIMULATION_STRIDE;
  const auto result = run_campaign(plans.size() / stride, [&](std::uint64_t index) { return plans[index * stride]; });
  WARN(result.runs << " of " << plans.size() << " perturbations explored");
  expect_no_failure(result);
}

TEST_CASE("what was found once") {
  std::vector<Plan> plans;
  for (const auto& entry : std::filesystem::directory_iterator("operator/simulation/scenarios")) {
    std::ifstream file(entry.path());
    const auto plan = Plan::from_json(nlohmann::json::parse(file, nullptr, false));
    INFO(entry.path());
    REQUIRE(plan.ok());
    plans.push_back(*plan);
  }
  expect_no_failure(run_campaign(plans.size(), [&](std::uint64_t index) { return plans[index]; }));
}

}  // namespace
}  // namespace sluice::simulation
