#include "scheduler/simulator/policies/registry.h"

#include <array>
#include <string>

#include "scheduler/simulator/policies/burst.h"
#include "scheduler/simulator/policies/cachew.h"
#include "scheduler/simulator/policies/fastflow.h"
#include "scheduler/simulator/policies/hpa.h"
#include "scheduler/simulator/policies/keda.h"
#include "scheduler/simulator/policies/knee_proportional.h"
#include "scheduler/simulator/policies/pecan.h"
#include "scheduler/simulator/policies/sluice.h"
#include "scheduler/simulator/policies/static_proportional.h"
#include "scheduler/simulator/policies/static_workers.h"
#include "scheduler/simulator/policies/synergy.h"
#include "scheduler/simulator/policies/tfdata.h"

namespace sluice::scheduler {
namespace {

using Made = std::unique_ptr<Policy>;

struct Entry {
  std::string_view name;
  Made (*make)(const Config&);
};

constexpr std::array kPolicies = {
    Entry{"static", [](const Config&) -> Made { return make_static_proportional_policy(); }},
    Entry{"fixed-workers", [](const Config&) -> Made { return make_static_workers_policy(); }},
    Entry{"burst", [](const Config&) -> Made { return make_burst_policy(); }},
    Entry{"knee-proportional", [](const Config& c) -> Made { return std::make_unique<KneeProportionalPolicy>(c); }},
    Entry{"hpa", [](const Config&) -> Made { return make_hpa_policy(); }},
    Entry{"hpa-everywhere", [](const Config&) -> Made { return make_hpa_policy(WorkerNodes::kAll); }},
    Entry{"keda", [](const Config&) -> Made { return make_keda_policy(); }},
    Entry{"keda-everywhere", [](const Config&) -> Made { return make_keda_policy({}, WorkerNodes::kAll); }},
    Entry{"cachew",
          [](const Config&) -> Made {
            return make_cachew_policy({"cachew", 7000});
          }},
    Entry{"cachew-2",
          [](const Config&) -> Made {
            return make_cachew_policy({"cachew-2", 2000});
          }},
    Entry{"cachew-1",
          [](const Config&) -> Made {
            return make_cachew_policy({"cachew-1", 1000});
          }},
    Entry{"pecan", [](const Config&) -> Made { return make_pecan_policy(7000, {.start_local = 10}); }},
    Entry{"fastflow", [](const Config&) -> Made { return make_fastflow_policy(); }},
    Entry{"synergy", [](const Config& c) -> Made { return std::make_unique<SynergyPolicy>(c); }},
    Entry{"tfdata", [](const Config&) -> Made { return make_tfdata_policy(); }},
    Entry{"sluice", [](const Config& c) -> Made { return std::make_unique<SluicePolicy>(c); }},
};

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const Config& config) {
  std::string known;
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make(config);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Error(ErrorCode::kInvalidArgument, "there is no policy \"" + std::string(name) + "\"; there are " + known);
}

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  names.reserve(kPolicies.size());
  for (const Entry& entry : kPolicies) names.push_back(entry.name);
  return names;
}

}  // namespace sluice::scheduler
