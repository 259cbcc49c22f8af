#include "operator/act/observed.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "scheduler/model/plan.h"
#include "src/base/utf8.h"

namespace sluice::act {

using api::ObservedFigures;
using api::TrainingJobStatusDraft;
using nlohmann::json;

namespace {

constexpr double kTrembleFraction = 0.05;
constexpr double kTremblePoints = 2;                // small figures and percentages
constexpr std::size_t kMaxExplanationBytes = 1024;  // of the schema

ObservedFigures figures_of(const decide::JobDecision& decision) {
  ObservedFigures figures;
  const scheduler::Estimate& estimate = decision.plan.estimate;
  if (const auto& measured = decision.measurement) {
    figures.samples_per_second = measured->samples_per_second;
    figures.accelerator_utilisation_percent = std::min(100.0, 100 * measured->compute_share);
    figures.data_wait_percent = 100 * estimate.wait_share;
  }
  if (estimate.confidence == scheduler::Confidence::kNone) return figures;
  const auto known = [](double value) { return value > 0 ? std::optional(value) : std::nullopt; };
  figures.demand_samples_per_second = known(estimate.demand_samples_per_second);
  figures.local_rate_per_core = known(estimate.local_rate_per_core);
  figures.remote_rate_per_core = known(estimate.remote_rate_per_core);
  figures.knee_millicores = known(1000 * estimate.knee_cores);
  figures.supply_percent = known(100 * decision.plan.supply_ratio);
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

}  // namespace

void render_observed(TrainingJobStatusDraft& status, const decide::JobDecision* decision) {
  if (decision == nullptr) {
    status.keep_figures();
    status.keep_bottleneck();
    status.keep_explanation();
    return;
  }
  // A trainer that does not run (yet, or any more) is not slowed down by anything else now.
  if (decision->plan.reason == scheduler::Reason::kNotRunning)
    status.keep_bottleneck();
  else
    status.set_bottleneck(scheduler::to_string(decision->plan.bottleneck));
  std::string sentences = decision->plan.explanation;
  for (const std::string* more :
       {&decision->rare_scrapes, &decision->left_free, &decision->capped, &decision->feeder_problem})
    if (!more->empty()) sentences += " " + *more;
  const std::string explanation = cut_text(sentences, kMaxExplanationBytes);
  const std::string explained_before = status.explanation_before();
  status.set_figures(figures_of(*decision));
  const bool keep_figures =
      !decision->plan.estimate.metrics_usable() || trembles_only(status.figures_before(), status.figures());
  if (keep_figures) status.keep_figures();
  const bool says_the_same = status.has_workers_as_before() && wording(explanation) == wording(explained_before);
  status.set_explanation(keep_figures && says_the_same && !explained_before.empty() ? explained_before : explanation);
}

}  // namespace sluice::act
