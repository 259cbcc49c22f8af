#include "operator/api/node_rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/fields.h"

namespace sluice::api {
namespace {

using nlohmann::json;

}  // namespace

NodeRules::NodeRules(const json& pod_spec) {
  const json& selector = field(pod_spec, "/nodeSelector");
  const json& affinity = field(pod_spec, "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
  const json& tolerations = list_field(pod_spec, "/tolerations");
  text_ = json::array({selector, affinity, tolerations}).dump();
  if (selector.is_object())
    for (const auto& [key, value] : selector.items())
      selector_[key] = value.is_string() ? value.get<std::string>() : "";
  if (affinity.is_object()) {
    terms_.emplace();
    for (const json& term : list_field(affinity, "/nodeSelectorTerms"))
      terms_->push_back(
          {requirements_of(list_field(term, "/matchExpressions")), requirements_of(list_field(term, "/matchFields"))});
  }
  for (const json& toleration : tolerations)
    tolerations_.push_back({text_field(toleration, "/key"), text_field(toleration, "/operator"),
                            text_field(toleration, "/value"), text_field(toleration, "/effect")});
}

bool NodeRules::Toleration::covers(const Taint& taint) const {
  if (!effect.empty() && effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  if (comparison.empty() || comparison == "Equal") return value == taint.value;
  return comparison == "Exists";
}

bool NodeRules::meets(const Term& term, const Node& node) {
  if (term.labels.empty() && term.fields.empty()) return false;
  return std::all_of(term.labels.begin(), term.labels.end(),
                     [&](const Requirement& rule) { return rule.is_met_by(node.label_if_any(rule.key)); }) &&
         std::all_of(term.fields.begin(), term.fields.end(), [&](const Requirement& rule) {
           return rule.key == "metadata.name" && rule.is_met_by(node.name());  // the only field that Kubernetes knows
         });
}

bool NodeRules::tolerates(const Taint& taint) const {
  return std::any_of(tolerations_.begin(), tolerations_.end(),
                     [&](const Toleration& toleration) { return toleration.covers(taint); });
}

bool NodeRules::admit(const Node& node) const { return select(node) && tolerate(node); }

bool NodeRules::select(const Node& node) const {
  for (const auto& [key, value] : selector_)
    if (node.label_if_any(key) != value) return false;
  if (terms_ && std::none_of(terms_->begin(), terms_->end(), [&](const Term& term) { return meets(term, node); }))
    return false;
  return true;
}

bool NodeRules::tolerate(const Node& node) const {
  const std::vector<Taint> taints = node.repelling_taints();
  return std::all_of(taints.begin(), taints.end(), [&](const Taint& taint) { return tolerates(taint); });
}

}  // namespace sluice::api
