#include "operator/api/object.h"

#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/fields.h"

namespace sluice::api {

using nlohmann::json;

const json& member(const json& object, std::string_view name) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string text_member(const json& object, std::string_view name) {
  const json& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

std::string name_of(const json& entry) { return text_member(entry, "name"); }

std::string Object::name() const { return text_field(object(), "/metadata/name"); }
std::string Object::name_space() const { return text_field(object(), "/metadata/namespace"); }
std::string Object::uid() const { return text_field(object(), "/metadata/uid"); }
std::string Object::resource_version() const { return text_field(object(), "/metadata/resourceVersion"); }
std::int64_t Object::generation() const { return integer_field(object(), "/metadata/generation"); }
std::string Object::created() const { return text_field(object(), "/metadata/creationTimestamp"); }
double Object::created_at_seconds() const { return time_field(object(), "/metadata/creationTimestamp"); }
bool Object::deleting() const { return !field(object(), "/metadata/deletionTimestamp").is_null(); }

std::string Object::label(std::string_view name) const {
  return text_member(field(object(), "/metadata/labels"), name);
}

const json& Object::annotations() const {
  static const json kNone = json::object();
  const json& annotations = field(object(), "/metadata/annotations");
  return annotations.is_object() ? annotations : kNone;
}

std::string Object::annotation(std::string_view name) const { return text_member(annotations(), name); }

Object::Controller Object::controller() const {
  for (const json& reference : list_field(object(), "/metadata/ownerReferences"))
    if (boolean_field(reference, "/controller"))
      return {text_field(reference, "/kind"), text_field(reference, "/name"), text_field(reference, "/uid")};
  return {};
}

bool Object::controlled_by(const Object& owner) const {
  const json& uid = field(owner.object(), "/metadata/uid");
  if (!uid.is_string() || uid.get_ref<const std::string&>().empty()) return false;
  for (const json& reference : list_field(object(), "/metadata/ownerReferences"))
    if (boolean_field(reference, "/controller")) return field(reference, "/uid") == uid;
  return false;
}

const json& Object::status() const { return field(object(), "/status"); }
const json& Object::conditions() const { return list_field(object(), "/status/conditions"); }

bool Object::condition_is_true(std::string_view type) const { return find_condition(conditions(), type).is_true(); }

}  // namespace sluice::api
