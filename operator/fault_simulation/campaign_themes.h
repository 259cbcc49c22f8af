// Campaigns that are enumerated, not drawn: each tries one kind of trouble on every workload.
#pragma once

#include <vector>

#include "operator/fault_simulation/fault_plan.h"

namespace sluice::simulation {

struct CampaignTheme {
  const char* name;   // of --theme
  const char* claim;  // what a failure disproves
  std::vector<FaultPlan> (*plans)();
};

// Thread safety: constant.
const std::vector<CampaignTheme>& campaign_themes();

// At most `count` of the plans, each from another stretch of them and at another place in it: of plans that are listed
// workload by workload, a sample has all workloads and all variants before any twice.
std::vector<FaultPlan> sample_of(const std::vector<FaultPlan>& plans, std::size_t count);

}  // namespace sluice::simulation
