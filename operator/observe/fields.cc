#include "operator/observe/fields.h"

#include <nlohmann/json.hpp>

#include "src/kube/quantity.h"

namespace sluice::observe {

using nlohmann::json;

namespace {

std::string unescaped(std::string_view key) {
  std::string text(key);
  for (std::size_t slash; (slash = text.find("~1")) != std::string::npos;) text.replace(slash, 2, "/");
  return text;
}

}  // namespace

const json& field(const json& object, std::string_view pointer) {
  static const json kNull;
  const json* value = &object;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);  // '/'
    const std::size_t end = pointer.find('/');
    const std::string_view key = pointer.substr(0, end);
    if (!value->is_object()) return kNull;
    // Without a copy of the key wherever that is possible: a dozen fields of a pod are looked up whenever it changes.
    const auto found = key.find('~') == std::string_view::npos ? value->find(key) : value->find(unescaped(key));
    if (found == value->end()) return kNull;
    value = &*found;
    pointer = end == std::string_view::npos ? std::string_view() : pointer.substr(end);
  }
  return *value;
}

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
  return kube::parse_millicores(quantity.is_string() ? quantity.get<std::string>() : quantity.dump()).value_or(0);
}

bool condition_is_true(const json& object, std::string_view type) {
  const json& conditions = field(object, "/status/conditions");
  if (!conditions.is_array()) return false;
  for (const json& condition : conditions)
    if (text_field(condition, "/type") == type) return text_field(condition, "/status") == "True";
  return false;
}

std::string object_key(const json& object) {
  return text_field(object, "/metadata/namespace") + "/" + text_field(object, "/metadata/name");
}

bool controlled_by(const json& child, const json& owner) {
  const json& references = field(child, "/metadata/ownerReferences");
  const std::string uid = text_field(owner, "/metadata/uid");
  if (!references.is_array() || uid.empty()) return false;
  for (const json& reference : references)
    if (boolean_field(reference, "/controller") && text_field(reference, "/uid") == uid) return true;
  return false;
}

}  // namespace sluice::observe
