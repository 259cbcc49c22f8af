#include "operator/fault_simulation/campaign_themes.h"

#include <algorithm>
#include <functional>

#include "operator/fault_simulation/simulation.h"
#include "operator/fault_simulation/workload.h"

namespace sluice::simulation {
namespace {

// Workload by workload, `variants` of each, which differ in their seed and in what `disturb(plan, variant)` adds.
std::vector<FaultPlan> of_every_workload(int variants, const std::function<void(FaultPlan&, int)>& disturb) {
  std::vector<FaultPlan> plans;
  for (const std::string& name : workload_names())
    for (int variant = 0; variant < variants; ++variant) {
      FaultPlan plan = undisturbed(name);
      plan.seed = 1 + plans.size();
      disturb(plan, variant);
      plans.push_back(std::move(plan));
    }
  return plans;
}

std::vector<FaultPlan> orders() {
  return of_every_workload(4, [](FaultPlan&, int) {});
}

std::vector<FaultPlan> wrong_clocks() {
  struct Clocks {
    int operator_skew_seconds;
    int node_skew_seconds;
  };
  static constexpr Clocks kClocks[] = {{600, 0}, {-600, 0}, {0, 600}, {0, -600}, {600, -600}};
  return of_every_workload(std::size(kClocks), [](FaultPlan& plan, int variant) {
    plan.operator_skew_seconds = kClocks[variant].operator_skew_seconds;
    plan.node_skew_seconds = kClocks[variant].node_skew_seconds;
    plan.rates.kill_pod_per_second = 0.01;
  });
}

std::vector<FaultPlan> drains() {
  return of_every_workload(2, [](FaultPlan& plan, int) { plan.rates.drain_node_per_second = 0.05; });
}

std::vector<FaultPlan> upgrades() {
  return of_every_workload(2, [](FaultPlan& plan, int variant) {
    plan.operators = 1 + variant;
    plan.rates.upgrade_per_second = 0.05;
  });
}

std::vector<FaultPlan> sieve() {
  std::vector<FaultPlan> plans;
  for (const std::string& name : workload_names())
    for (FaultPlan& plan : sieve_plans(name)) plans.push_back(std::move(plan));
  return plans;
}

}  // namespace

const std::vector<CampaignTheme>& campaign_themes() {
  static const std::vector<CampaignTheme> kThemes = {
      {"orders", "every workload ends as it should when nothing goes wrong, in whatever order things happen", orders},
      {"clocks", "clocks that are ten minutes wrong hold nothing up, and make nothing happen more often", wrong_clocks},
      {"drains", "nodes are drained for a while, or taken back and replaced, and workloads end as if none had been",
       drains},
      {"upgrades", "the operator is upgraded and rolled back, and what the other release wrote is put right", upgrades},
      {"sieve", "every crash, every unobserved pair of changes and every stale view ends as if it had not been", sieve},
  };
  return kThemes;
}

std::vector<FaultPlan> sample_of(const std::vector<FaultPlan>& plans, std::size_t count) {
  const std::size_t drawn = std::min(count, plans.size());
  std::vector<FaultPlan> sample;
  for (std::size_t stretch = 0; stretch < drawn; ++stretch) {
    const std::size_t begin = stretch * plans.size() / drawn, end = (stretch + 1) * plans.size() / drawn;
    sample.push_back(plans[begin + stretch % (end - begin)]);
  }
  return sample;
}

}  // namespace sluice::simulation
