#include "operator/fault_simulation/fault_plan.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "operator/fault_simulation/random.h"
#include "operator/fault_simulation/workload.h"

namespace sluice::simulation {

using nlohmann::json;

namespace {

struct Rate {
  const char* name;
  double FaultRates::*rate;
  double most;  // of a random plan
};
constexpr Rate kRates[] = {{"loseRequest", &FaultRates::lose_request, 0.05},
                           {"loseAnswer", &FaultRates::lose_answer, 0.05},
                           {"repeat", &FaultRates::repeat, 0.03},
                           {"refuse", &FaultRates::refuse, 0.05},
                           {"delay", &FaultRates::delay, 0.02},
                           {"errorPage", &FaultRates::error_page, 0.05},
                           {"crashPerSecond", &FaultRates::crash_per_second, 0.03},
                           {"pausePerSecond", &FaultRates::pause_per_second, 0.01},
                           {"breakWatchPerSecond", &FaultRates::break_watch_per_second, 0.05},
                           {"garbleWatchPerSecond", &FaultRates::garble_watch_per_second, 0.05},
                           {"stallWatchPerSecond", &FaultRates::stall_watch_per_second, 0.03},
                           {"expirePerSecond", &FaultRates::expire_per_second, 0.03},
                           {"clockJumpPerSecond", &FaultRates::clock_jump_per_second, 0.02},
                           {"metricsPerSecond", &FaultRates::metrics_per_second, 0.03},
                           {"killPodPerSecond", &FaultRates::kill_pod_per_second, 0.03},
                           {"deleteServicePerSecond", &FaultRates::delete_service_per_second, 0.02},
                           {"writeReplicasPerSecond", &FaultRates::write_replicas_per_second, 0.02},
                           {"refuseResize", &FaultRates::refuse_resize, 0.9},
                           {"loseResizesPerSecond", &FaultRates::lose_resizes_per_second, 0.03},
                           {"ageCertificatesPerSecond", &FaultRates::age_certificates_per_second, 0.03},
                           {"drainNodePerSecond", &FaultRates::drain_node_per_second, 0.02},
                           {"upgradePerSecond", &FaultRates::upgrade_per_second, 0.02}};

constexpr int kMostSkewSeconds = 600;

constexpr const char* kPatterns[] = {"crash", "unobserved", "stale"};

}  // namespace

json FaultPlan::to_json() const {
  json result = {{"workload", workload}, {"seed", seed}, {"operators", operators}};
  for (const Rate& rate : kRates)
    if (rates.*rate.rate > 0) result["rates"][rate.name] = rates.*rate.rate;
  if (operator_skew_seconds != 0) result["operatorSkewSeconds"] = operator_skew_seconds;
  if (node_skew_seconds != 0) result["nodeSkewSeconds"] = node_skew_seconds;
  if (perturbation)
    result["perturbation"] = {{"pattern", kPatterns[static_cast<int>(perturbation->kind)]},
                              {"at", perturbation->at},
                              {"until", perturbation->until}};
  for (const TemplateDamage& damage : damages) result["damages"].push_back(damage.to_json());
  if (stored_before) result["storedBefore"] = true;
  return result;
}

Result<FaultPlan> FaultPlan::from_json(const json& value) {
  try {
    FaultPlan plan;
    plan.workload = value.at("workload");
    plan.seed = value.at("seed");
    plan.operators = value.value("operators", 1);
    plan.operator_skew_seconds = value.value("operatorSkewSeconds", 0);
    plan.node_skew_seconds = value.value("nodeSkewSeconds", 0);
    const json rates = value.value("rates", json::object());
    for (const Rate& rate : kRates) plan.rates.*rate.rate = rates.value(rate.name, 0.0);
    if (const auto found = value.find("perturbation"); found != value.end()) {
      Perturbation perturbation;
      const std::string pattern = found->at("pattern");
      const auto* kind = std::find(std::begin(kPatterns), std::end(kPatterns), pattern);
      if (kind == std::end(kPatterns)) return invalid_argument("perturbation.pattern: unknown: " + pattern);
      perturbation.kind = static_cast<Perturbation::Kind>(kind - std::begin(kPatterns));
      perturbation.at = found->at("at");
      perturbation.until = found->value("until", std::uint64_t{0});
      plan.perturbation = perturbation;
    }
    for (const json& each : value.value("damages", json::array())) {
      SLUICE_TRY(TemplateDamage damage, TemplateDamage::from_json(each));
      plan.damages.push_back(std::move(damage));
    }
    plan.stored_before = value.value("storedBefore", false);
    return plan;
  } catch (const json::exception& failure) {
    return invalid_argument(std::string("no plan: ") + failure.what());
  }
}

std::vector<double FaultRates::*> all_rates() {
  std::vector<double FaultRates::*> rates;
  for (const Rate& rate : kRates) rates.push_back(rate.rate);
  return rates;
}

FaultPlan random_plan(std::uint64_t seed) {
  Random random(seed * 0x9E3779B97F4A7C15u + 1);
  FaultPlan plan;
  const std::vector<std::string>& names = workload_names();
  plan.workload = names[random.below(names.size())];
  plan.seed = seed;
  plan.operators = random.chance(0.3) ? 2 : 1;
  // A few kinds of fault at a time, each as often as it likes: all of them together would hide each other.
  for (const Rate& rate : kRates)
    if (random.chance(0.35)) plan.rates.*rate.rate = rate.most * random.unit();
  const auto skew = [&] { return static_cast<int>(random.below(2 * kMostSkewSeconds + 1)) - kMostSkewSeconds; };
  if (random.chance(0.35)) plan.operator_skew_seconds = skew();
  if (random.chance(0.2)) plan.node_skew_seconds = skew();
  if (const auto drawn = workload(plan.workload); drawn.ok())
    for (const auto& [object, pod_template] : (*drawn)->odd_templates)
      if (random.chance(0.7))
        std::ranges::move(draw_damages(random, object, pod_template), std::back_inserter(plan.damages));
  plan.stored_before = !plan.damages.empty() && random.chance(0.5);
  return plan;
}

}  // namespace sluice::simulation
