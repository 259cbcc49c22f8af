#include "operator/api/status_draft.h"

#include <cmath>

#include "operator/api/labels.h"

namespace sluice::api {

using nlohmann::json;

StatusDraft::StatusDraft(const Object& object) : object_(object), status_(json::object()) {
  part("observedGeneration") = object.generation();
}

void StatusDraft::set_conditions(const std::vector<Condition>& conditions, std::string_view now) {
  part("conditions") = render_conditions(conditions, object_.conditions(), object_.generation(), now);
}

void StatusDraft::keep_all() {
  if (!object_.status().is_object()) return;
  status_ = object_.status();
  part("observedGeneration") = object_.generation();
}

void StatusDraft::keep(const char* name) {
  status_.erase(name);
  if (const json& value = part_before(name); !value.is_null()) part(name) = value;
}

void PoolStatusDraft::set_workers(std::int64_t live, std::int64_t ready) {
  part("replicas") = live;
  part("readyReplicas") = ready;
  part("selector") =
      std::string(kJobLabel) + "=" + job_ + "," + std::string(kComponentLabel) + "=" + std::string(kWorkerComponent);
}

void TrainingJobStatusDraft::set_workers(std::int64_t desired, std::int64_t ready,
                                         std::optional<std::int64_t> recommended) {
  part("workers") = {{"desired", desired}, {"ready", ready}};
  if (recommended) part("workers")["recommended"] = *recommended;
}

std::string TrainingJobStatusDraft::bottleneck() const {
  const json& bottleneck = part("bottleneck");
  return bottleneck.is_string() ? bottleneck.get<std::string>() : "";
}

std::string TrainingJobStatusDraft::explanation_before() const {
  const json& explanation = part_before("explanation");
  return explanation.is_string() ? explanation.get<std::string>() : "";
}

void TrainingJobStatusDraft::set_figures(const ObservedFigures& figures) {
  const std::pair<const char*, std::optional<double>> named[] = {
      {"samplesPerSecond", figures.samples_per_second},
      {"acceleratorUtilisationPercent", figures.accelerator_utilisation_percent},
      {"dataWaitPercent", figures.data_wait_percent},
      {"demandSamplesPerSecond", figures.demand_samples_per_second},
      {"localRatePerCore", figures.local_rate_per_core},
      {"remoteRatePerCore", figures.remote_rate_per_core},
      {"kneeMilliCores", figures.knee_millicores},
      {"supplyPercent", figures.supply_percent}};
  json& observed = part("observed") = json::object();
  for (const auto& [name, value] : named)
    if (value && std::isfinite(*value) && *value >= 0 && *value < 1e15) observed[name] = std::llround(*value);
}

}  // namespace sluice::api
