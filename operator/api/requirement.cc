#include "operator/api/requirement.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "operator/api/fields.h"

namespace sluice::api {
namespace {

using nlohmann::json;

// As Go's strconv.ParseInt reads it.
std::optional<std::int64_t> whole_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string> label_of(const json& labels, const std::string& key) {
  if (!labels.is_object()) return std::nullopt;
  const auto found = labels.find(key);
  return found != labels.end() && found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

}  // namespace

bool Requirement::is_met_by(const std::optional<std::string>& value) const {
  const bool listed = value && std::find(values.begin(), values.end(), *value) != values.end();
  if (comparison == "In") return listed;
  if (comparison == "NotIn") return !listed;  // also where there is no such label
  if (comparison == "Exists") return value.has_value();
  if (comparison == "DoesNotExist") return !value;
  if ((comparison == "Gt" || comparison == "Lt") && value && values.size() == 1) {
    const auto has = whole_number(*value);
    const auto bound = whole_number(values.front());
    if (has && bound) return comparison == "Gt" ? *has > *bound : *has < *bound;
  }
  return false;
}

std::vector<Requirement> requirements_of(const json& list) {
  std::vector<Requirement> requirements;
  for (const json& entry : list) {
    Requirement requirement{text_field(entry, "/key"), text_field(entry, "/operator"), {}};
    for (const json& value : list_field(entry, "/values"))
      if (value.is_string()) requirement.values.push_back(value.get<std::string>());
    requirements.push_back(std::move(requirement));
  }
  return requirements;
}

bool selects(const json& selector, const json& labels) {
  if (!selector.is_object()) return false;
  if (const json& wanted = field(selector, "/matchLabels"); wanted.is_object())
    for (const auto& [key, value] : wanted.items())
      if (!value.is_string() || label_of(labels, key) != value.get<std::string>()) return false;
  const std::vector<Requirement> requirements = requirements_of(list_field(selector, "/matchExpressions"));
  return std::all_of(requirements.begin(), requirements.end(),
                     [&](const Requirement& rule) { return rule.is_met_by(label_of(labels, rule.key)); });
}

}  // namespace sluice::api
