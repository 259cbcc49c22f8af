#include "operator/act/objects.h"

#include <nlohmann/json.hpp>

namespace sluice::act {

using nlohmann::json;

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

json without_nulls(const json& value) {
  if (value.is_object()) {
    json result = json::object();
    for (const auto& [key, member] : value.items())
      if (!member.is_null()) result[key] = without_nulls(member);
    return result;
  }
  if (value.is_array()) {
    json result = json::array();
    for (const json& element : value) result.push_back(without_nulls(element));
    return result;
  }
  return value;
}

}  // namespace sluice::act
