#include "operator/act/observed.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "operator/api/object.h"
#include "scheduler/model/plan.h"
#include "src/base/utf8.h"

namespace sluice::act {

using api::member;
using nlohmann::json;

namespace {

constexpr double kTrembleFraction = 0.05;
constexpr double kTremblePoints = 2;                // small figures and percentages
constexpr std::size_t kMaxExplanationBytes = 1024;  // of the schema

void put(json& figures, const char* name, double value) {
  if (std::isfinite(value) && value >= 0 && value < 1e15) figures[name] = std::llround(value);
}

json figures_of(const decide::JobDecision& decision) {
  json figures = json::object();
  const scheduler::Estimate& estimate = decision.plan.estimate;
  if (const auto& measured = decision.measurement) {
    put(figures, "samplesPerSecond", measured->samples_per_second);
    put(figures, "acceleratorUtilisationPercent", std::min(100.0, 100 * measured->compute_share));
    put(figures, "dataWaitPercent", 100 * estimate.wait_share);
  }
  if (estimate.confidence == scheduler::Confidence::kNone) return figures;
  const auto put_known = [&](const char* name, double value) {
    if (value > 0) put(figures, name, value);
  };
  put_known("demandSamplesPerSecond", estimate.demand_samples_per_second);
  put_known("localRatePerCore", estimate.local_rate_per_core);
  put_known("remoteRatePerCore", estimate.remote_rate_per_core);
  put_known("kneeMilliCores", 1000 * estimate.knee_cores);
  put_known("supplyPercent", 100 * decision.plan.supply_ratio);
  return figures;
}

bool trembles_only(const json& before, const json& after) {
  if (!before.is_object() || before.size() != after.size()) return false;
  for (const auto& [name, value] : after.items()) {
    const auto old = before.find(name);
    if (old == before.end() || !old->is_number()) return false;
    const double change = std::fabs(value.get<double>() - old->get<double>());
    if (change > std::max(kTremblePoints, kTrembleFraction * old->get<double>())) return false;
  }
  return true;
}

// "needs 3 workers" and "needs 5 workers" have the same wording.
std::string wording(const std::string& sentence) {
  std::string words;
  for (const char character : sentence)
    if (std::isdigit(static_cast<unsigned char>(character)) == 0 && character != '.') words += character;
  return words;
}

void copy(json& status, const json& before, const char* name) {
  if (const json& value = member(before, name); !value.is_null()) status[name] = value;
}

}  // namespace

void render_observed(json& status, const json& before, const decide::JobDecision* decision) {
  if (decision == nullptr) {
    for (const char* name : {"observed", "bottleneck", "explanation"}) copy(status, before, name);
    return;
  }
  // A trainer that does not run (yet, or any more) is not slowed down by anything else now.
  if (decision->plan.reason == scheduler::Reason::kNotRunning)
    copy(status, before, "bottleneck");
  else
    status["bottleneck"] = scheduler::to_string(decision->plan.bottleneck);
  std::string sentences = decision->plan.explanation;
  for (const std::string* more : {&decision->left_free, &decision->capped, &decision->feeder_problem})
    if (!more->empty()) sentences += " " + *more;
  const std::string explanation = cut_text(sentences, kMaxExplanationBytes);
  const std::string explained_before = api::text_member(before, "explanation");
  const bool same_counts = member(before, "workers") == member(status, "workers");
  const bool same_wording = wording(explanation) == wording(explained_before);
  json figures = figures_of(*decision);
  const bool keep_figures =
      !decision->plan.estimate.metrics_usable() || trembles_only(member(before, "observed"), figures);
  if (keep_figures)
    copy(status, before, "observed");
  else
    status["observed"] = std::move(figures);
  const bool keep_explanation = keep_figures && same_wording && same_counts && !explained_before.empty();
  status["explanation"] = keep_explanation ? explained_before : explanation;
}

}  // namespace sluice::act
