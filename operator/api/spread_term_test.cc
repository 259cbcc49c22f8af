#include "operator/api/spread_term.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

json of_team(const char* team) { return {{"matchLabels", {{"team", team}}}}; }

json template_with(const char* path, const json& rule) {
  json made = {{"metadata", {{"labels", {{"team", "a"}, {"tier", "data"}}}}}};
  made[json::json_pointer(path)] = json::array();
  made[json::json_pointer(path)].push_back(rule);
  return made;
}

json with_anti_affinity(json more) {
  json term = {{"topologyKey", "host"}, {"labelSelector", of_team("a")}};
  term.update(more);
  return template_with("/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution", term);
}

json with_constraint(json more) {
  json constraint = {
      {"topologyKey", "zone"}, {"maxSkew", 2}, {"whenUnsatisfiable", "DoNotSchedule"}, {"labelSelector", of_team("a")}};
  constraint.update(more);
  return template_with("/spec/topologySpreadConstraints", constraint);
}

TEST_CASE("required anti-affinity counts where it is about the template's own pods") {
  struct Row {
    const char* situation;
    json more;
    bool counts;
  };
  const Row rows[] = {
      {"its own label", json::object(), true},
      {"another label", {{"labelSelector", of_team("b")}}, false},
      {"no selector selects none", {{"labelSelector", nullptr}}, false},
      {"an empty selector selects all", {{"labelSelector", json::object()}}, true},
      {"an expression that holds",
       {{"labelSelector",
         {{"matchExpressions", {{{"key", "tier"}, {"operator", "In"}, {"values", {"data", "web"}}}}}}}},
       true},
      {"an expression that does not",
       {{"labelSelector", {{"matchExpressions", {{{"key", "tier"}, {"operator", "DoesNotExist"}}}}}}},
       false},
      {"its own namespace", {{"namespaces", {"other", "ml"}}}, true},
      {"another namespace", {{"namespaces", {"other"}}}, false},
      {"all namespaces", {{"namespaceSelector", json::object()}}, true},
      {"namespaces by labels, which are not known", {{"namespaceSelector", of_team("a")}}, false},
      {"pods whose label differs", {{"mismatchLabelKeys", {"tier"}}}, false},
      {"a label that it does not have", {{"mismatchLabelKeys", {"colour"}}}, true},
      {"the labels of its own version", {{"matchLabelKeys", {"tier"}}}, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const std::vector<SpreadTerm> terms = spread_terms(with_anti_affinity(row.more), "ml");
    REQUIRE(terms.size() == (row.counts ? 1 : 0));
    if (row.counts) CHECK(terms[0] == SpreadTerm{.topology_key = "host", .apart = true});
  }
}

TEST_CASE("a constraint of topology spread counts where it keeps pods from nodes") {
  struct Row {
    const char* situation;
    json more;
    std::vector<SpreadTerm> terms;
  };
  const Row rows[] = {
      {"the defaults of Kubernetes", json::object(), {{.topology_key = "zone", .most_ahead = 2}}},
      {"a wish only", {{"whenUnsatisfiable", "ScheduleAnyway"}}, {}},
      {"other pods", {{"labelSelector", of_team("b")}}, {}},
      {"all that it may say",
       {{"minDomains", 3}, {"nodeAffinityPolicy", "Ignore"}, {"nodeTaintsPolicy", "Honor"}},
       {{.topology_key = "zone", .most_ahead = 2, .least_domains = 3, .by_affinity = false, .by_taints = true}}},
      {"a skew that the API server refuses", {{"maxSkew", -4}}, {{.topology_key = "zone", .most_ahead = 1}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    CHECK(spread_terms(with_constraint(row.more), "ml") == row.terms);
  }
}

TEST_CASE("what is no template has no terms") {
  for (const json& odd :
       {json(), json::object(), json({{"spec", {{"affinity", 3}, {"topologySpreadConstraints", "x"}}}}),
        json({{"spec", {{"topologySpreadConstraints", {1, nullptr}}}}})})
    CHECK(spread_terms(odd, "ml").empty());
}

}  // namespace
}  // namespace sluice::api
