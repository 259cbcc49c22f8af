#include "operator/api/fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/kube/json_member.h"
#include "src/kube/quantity.h"
#include "src/kube/timestamp.h"

namespace sluice::api {

using nlohmann::json;

namespace {

std::int64_t bounded(const Result<std::int64_t>& quantity) {
  return std::clamp(quantity.value_or(0), -kMostOfQuantity, kMostOfQuantity);
}

}  // namespace

const json& field(const json& object, std::string_view pointer) { return kube::value_at(object, pointer); }

std::string text_field(const json& object, std::string_view pointer, std::string_view fallback) {
  const json& value = field(object, pointer);
  return value.is_string() ? value.get<std::string>() : std::string(fallback);
}

std::int64_t integer_field(const json& object, std::string_view pointer, std::int64_t fallback) {
  const json& value = field(object, pointer);
  return value.is_number_integer() ? value.get<std::int64_t>() : fallback;
}

bool boolean_field(const json& object, std::string_view pointer, bool fallback) {
  const json& value = field(object, pointer);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

std::int64_t millicores_field(const json& object, std::string_view pointer) {
  const json& quantity = field(object, pointer);
  if (quantity.is_null()) return 0;
  return bounded(kube::parse_millicores(quantity.is_string() ? quantity.get<std::string>() : quantity.dump()));
}

std::int64_t bytes_field(const json& object, std::string_view pointer) {
  const json& quantity = field(object, pointer);
  if (quantity.is_null()) return 0;
  return bounded(kube::parse_bytes(quantity.is_string() ? quantity.get<std::string>() : quantity.dump()));
}

double unix_seconds(std::string_view time) {
  const auto parsed = kube::parse_time(time);
  return parsed ? std::chrono::duration<double>(parsed->time_since_epoch()).count() : 0;
}

double time_field(const json& object, std::string_view pointer) { return unix_seconds(text_field(object, pointer)); }

const json& list_field(const json& object, std::string_view pointer) {
  static const json kEmpty = json::array();
  const json& value = field(object, pointer);
  return value.is_array() ? value : kEmpty;
}

}  // namespace sluice::api
