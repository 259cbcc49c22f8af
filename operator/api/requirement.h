// One requirement of a selector on a label or field: matchExpressions and matchFields of Kubernetes.
//
// Thread safety: values.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sluice::api {

struct Requirement {
  std::string key;
  std::string comparison;  // In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values;

  bool is_met_by(const std::optional<std::string>& value) const;
};

// Of a list of matchExpressions or matchFields; missing or wrongly typed fields are empty.
std::vector<Requirement> requirements_of(const nlohmann::json& list);

// Whether a LabelSelector selects an object with these labels: matchLabels and matchExpressions. One without either
// selects every object, one that is absent none.
bool selects(const nlohmann::json& selector, const nlohmann::json& labels);

}  // namespace sluice::api
