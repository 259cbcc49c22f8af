#include "src/pipeline/json_object.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace sluice::pipeline {

using nlohmann::json;

Result<JsonObject> JsonObject::of(const json& value, std::string where) {
  if (!value.is_object()) return invalid_argument((where.empty() ? "specification" : where) + ": must be an object");
  return JsonObject(value, std::move(where));
}

bool JsonObject::has(std::string_view field) const { return value_->contains(std::string(field)); }

Error JsonObject::error(std::string_view field, std::string_view message) const {
  std::string path = where_;
  if (!path.empty()) path += '.';
  return invalid_argument(path.append(field).append(": ").append(message));
}

Result<const json*> JsonObject::field(std::string_view name) {
  known_.emplace(name);
  const auto found = value_->find(std::string(name));
  if (found == value_->end()) return error(name, "is missing");
  return &*found;
}

Result<std::string> JsonObject::string(std::string_view name) {
  SLUICE_TRY(const json* value, field(name));
  if (!value->is_string()) return error(name, "must be a string");
  return value->get<std::string>();
}

Result<std::int64_t> JsonObject::integer(std::string_view name, std::int64_t smallest, std::int64_t largest) {
  SLUICE_TRY(const json* value, field(name));
  const std::string must = "must be a whole number from " + std::to_string(smallest) + " to " + std::to_string(largest);
  if (!value->is_number_integer()) return error(name, must);
  // An unsigned number above the signed range comes out negative here and is refused with the rest.
  const auto number = value->get<std::int64_t>();
  if (number < smallest || number > largest) return error(name, must);
  return number;
}

Result<double> JsonObject::number(std::string_view name, double smallest, double largest) {
  SLUICE_TRY(const json* value, field(name));
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= smallest && number <= largest)) {
    return error(name, "must be a number from " + json(smallest).dump() + " to " + json(largest).dump());
  }
  return number;
}

Result<std::vector<double>> JsonObject::numbers(std::string_view name, std::size_t count) {
  SLUICE_TRY(const json* value, field(name));
  const std::string must = "must be " + std::to_string(count) + " numbers";
  if (!value->is_array() || value->size() != count) return error(name, must);
  std::vector<double> numbers;
  for (const json& element : *value) {
    if (!element.is_number()) return error(name, must);
    numbers.push_back(element.get<double>());
  }
  return numbers;
}

Result<const json*> JsonObject::array(std::string_view name) {
  SLUICE_TRY(const json* value, field(name));
  if (!value->is_array()) return error(name, "must be a list");
  return value;
}

Result<void> JsonObject::refuse_unknown_fields() const {
  for (const auto& [name, unused] : value_->items()) {
    if (!known_.contains(name)) return error(name, "is not known to native pipelines");
  }
  return {};
}

}  // namespace sluice::pipeline
