#include "operator/act/objects.h"

#include <nlohmann/json.hpp>

namespace sluice::act {

using nlohmann::json;

namespace {

void remove_nulls(json& value) {
  if (value.is_array())
    for (json& element : value) remove_nulls(element);
  if (!value.is_object()) return;
  for (auto member = value.begin(); member != value.end();) {
    remove_nulls(*member);
    member = member->is_null() ? value.erase(member) : std::next(member);
  }
}

}  // namespace

bool holds(const json& observed, const json& desired) {
  if (desired.is_object()) {
    if (!observed.is_object()) return desired.empty();
    for (const auto& [key, value] : desired.items()) {
      const auto found = observed.find(key);
      // The API server drops empty objects and lists in some places.
      if (found == observed.end() ? !(value.is_structured() && value.empty()) : !holds(*found, value)) return false;
    }
    return true;
  }
  if (desired.is_array()) {
    if (!observed.is_array() || observed.size() != desired.size()) return false;
    for (std::size_t index = 0; index < desired.size(); ++index)
      if (!holds(observed[index], desired[index])) return false;
    return true;
  }
  return observed == desired;
}

json without_nulls(json value) {
  remove_nulls(value);
  return value;
}

}  // namespace sluice::act
