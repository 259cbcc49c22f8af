#include "operator/api/spread_term.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/requirement.h"

namespace sluice::api {
namespace {

using nlohmann::json;

int bounded(std::int64_t number) {
  return static_cast<int>(std::clamp<std::int64_t>(number, 1, std::numeric_limits<int>::max()));
}

bool holds_any(const json& labels, const json& keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const json& key) { return key.is_string() && labels.contains(key.get<std::string>()); });
}

// Namespaces that are selected by labels are not known, but for an empty selector, which selects all of them.
bool covers_namespace(const json& term, std::string_view name_space) {
  const json& namespaces = list_field(term, "/namespaces");
  const json& selector = field(term, "/namespaceSelector");
  if (namespaces.empty() && !selector.is_object()) return true;
  return std::find(namespaces.begin(), namespaces.end(), name_space) != namespaces.end() ||
         (selector.is_object() && selects(selector, json::object()));
}

}  // namespace

std::vector<SpreadTerm> spread_terms(const json& pod_template, std::string_view name_space) {
  const json& labels = field(pod_template, "/metadata/labels");
  std::vector<SpreadTerm> terms;
  for (const json& term :
       list_field(pod_template, "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution"))
    if (selects(field(term, "/labelSelector"), labels) && covers_namespace(term, name_space) &&
        !holds_any(labels, list_field(term, "/mismatchLabelKeys")))
      terms.push_back({.topology_key = text_field(term, "/topologyKey"), .apart = true});
  for (const json& constraint : list_field(pod_template, "/spec/topologySpreadConstraints"))
    if (text_field(constraint, "/whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule" &&
        selects(field(constraint, "/labelSelector"), labels))
      terms.push_back({.topology_key = text_field(constraint, "/topologyKey"),
                       .most_ahead = bounded(integer_field(constraint, "/maxSkew", 1)),
                       .least_domains = bounded(integer_field(constraint, "/minDomains", 1)),
                       .by_affinity = text_field(constraint, "/nodeAffinityPolicy", "Honor") == "Honor",
                       .by_taints = text_field(constraint, "/nodeTaintsPolicy", "Ignore") == "Honor"});
  return terms;
}

}  // namespace sluice::api
