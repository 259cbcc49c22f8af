#include "src/kube/fake/schema.h"

#include <algorithm>
#include <set>
#include <utility>

#include "src/kube/timestamp.h"

namespace sluice::kube::fake {
namespace {

constexpr const char* kBoundKeywords[] = {"minimum",  "maximum",  "minLength",    "maxLength",
                                          "minItems", "maxItems", "maxProperties"};
const std::set<std::string> kOtherKeywords = {"type",
                                              "properties",
                                              "required",
                                              "additionalProperties",
                                              "items",
                                              "enum",
                                              "default",
                                              "pattern",
                                              "format",
                                              "description",
                                              "nullable",
                                              "x-kubernetes-int-or-string",
                                              "x-kubernetes-preserve-unknown-fields",
                                              "x-kubernetes-list-type",
                                              "x-kubernetes-list-map-keys",
                                              "x-kubernetes-validations"};

constexpr const char* kOfEveryObject[] = {"apiVersion", "kind", "metadata"};

std::string type_name(const Json& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  return value.is_null() ? "null" : value.type_name();
}

// Characters, not bytes.
std::size_t length_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char byte) { return (byte & 0xC0) != 0x80; }));
}

// nullptr where there is none.
const Json* member_of(const Json* object, const std::string& name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

// The element of `list` that has the same keys as `element`; nullptr where nothing identifies elements.
const Json* same_element(const Json* list, const Json& element, const std::vector<std::string>& keys) {
  if (keys.empty() || list == nullptr || !list->is_array() || !element.is_object()) return nullptr;
  for (const Json& candidate : *list)
    if (std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
          return candidate.is_object() && candidate.value(key, Json()) == element.value(key, Json());
        }))
      return &candidate;
  return nullptr;
}

}  // namespace

std::string Place::to_string() const {
  if (around_ == nullptr) return "";
  const std::string path = around_->to_string();
  if (name_ == nullptr) return path + "[" + std::to_string(index_) + "]";
  return path.empty() ? *name_ : path + "." + *name_;
}

Result<std::shared_ptr<const Schema>> Schema::read(const Json& openapi) {
  auto schema = std::make_shared<Schema>();
  for (const auto& [keyword, value] : openapi.items()) {
    const bool is_bound =
        std::find(std::begin(kBoundKeywords), std::end(kBoundKeywords), keyword) != std::end(kBoundKeywords);
    if (!is_bound && !kOtherKeywords.contains(keyword))
      return invalid_argument("the fake API server does not know the schema keyword " + keyword);
  }
  SLUICE_TRY_VOID(schema->read_bounds(openapi));
  SLUICE_TRY_VOID(schema->read_children(openapi));
  SLUICE_TRY_VOID(schema->read_rules(openapi));
  return std::shared_ptr<const Schema>(schema);
}

Result<void> Schema::read_bounds(const Json& openapi) {
  type_ = openapi.value("type", "");
  nullable_ = openapi.value("nullable", false);
  int_or_string_ = openapi.value("x-kubernetes-int-or-string", false);
  preserves_unknown_ = openapi.value("x-kubernetes-preserve-unknown-fields", false);
  is_time_ = openapi.value("format", "") == "date-time";
  required_ = openapi.value("required", std::vector<std::string>());
  enum_ = openapi.value("enum", Json());
  default_ = openapi.contains("default") ? openapi.at("default") : Json(Json::value_t::discarded);
  for (const char* bound : kBoundKeywords)
    if (openapi.contains(bound)) bounds_[bound] = openapi.at(bound).get<double>();
  pattern_text_ = openapi.value("pattern", "");
  if (!pattern_text_.empty()) pattern_.emplace(pattern_text_, std::regex::ECMAScript | std::regex::optimize);
  if (openapi.value("x-kubernetes-list-type", "") == "map")
    list_map_keys_ = openapi.at("x-kubernetes-list-map-keys").get<std::vector<std::string>>();
  return {};
}

Result<void> Schema::read_children(const Json& openapi) {
  if (const auto properties = openapi.find("properties"); properties != openapi.end()) {
    for (const auto& [name, child] : properties->items()) {
      SLUICE_TRY(properties_[name], read(child));
    }
  }
  if (const auto items = openapi.find("items"); items != openapi.end()) {
    SLUICE_TRY(items_, read(*items));
  }
  if (const auto additional = openapi.find("additionalProperties"); additional != openapi.end()) {
    SLUICE_TRY(additional_, read(*additional));
  }
  return {};
}

Result<void> Schema::read_rules(const Json& openapi) {
  for (const Json& rule : openapi.value("x-kubernetes-validations", Json::array())) {
    SLUICE_TRY(CelExpression expression, CelExpression::parse(rule.at("rule").get<std::string>()));
    rules_.push_back({std::move(expression), rule.value("message", ""), rule.value("fieldPath", ""),
                      rule.value("reason", "FieldValueInvalid")});
  }
  return {};
}

const Schema* Schema::member(const std::string& name) const {
  const auto found = properties_.find(name);
  return found != properties_.end() ? found->second.get() : additional_.get();
}

std::vector<std::string> Schema::unknown_fields(const Json& object) const {
  std::vector<std::string> found;
  for (const auto& [name, element] : object.items())
    if (std::find(std::begin(kOfEveryObject), std::end(kOfEveryObject), name) == std::end(kOfEveryObject))
      find_unknown_member(name, element, Place(), found);
  return found;
}

void Schema::find_unknown(const Json& value, const Place& place, std::vector<std::string>& found) const {
  if (value.is_array() && items_ != nullptr)
    for (std::size_t index = 0; index < value.size(); ++index)
      items_->find_unknown(value[index], place.element(index), found);
  if (!value.is_object()) return;
  for (const auto& [name, element] : value.items()) find_unknown_member(name, element, place, found);
}

void Schema::find_unknown_member(const std::string& name, const Json& value, const Place& around,
                                 std::vector<std::string>& found) const {
  const Schema* child = member(name);
  if (child != nullptr)
    child->find_unknown(value, around.member(name), found);
  else if (!preserves_unknown_)
    found.push_back(around.member(name).to_string());
}

void Schema::prune_object(Json& object) const {
  Json kept = Json::object();
  for (const char* name : kOfEveryObject)
    if (object.contains(name)) kept[name] = std::move(object[name]);
  prune(object);
  object.update(kept);
}

void Schema::prune(Json& value) const {
  if (value.is_array() && items_ != nullptr)
    for (Json& element : value) items_->prune(element);
  if (!value.is_object()) return;
  for (auto entry = value.begin(); entry != value.end();) {
    const Schema* child = member(entry.key());
    if (child == nullptr && !preserves_unknown_) {
      entry = value.erase(entry);
      continue;
    }
    if (child != nullptr) child->prune(*entry);
    ++entry;
  }
}

void Schema::apply_defaults(Json& value) const {
  if (value.is_array() && items_ != nullptr)
    for (Json& element : value) items_->apply_defaults(element);
  if (!value.is_object()) return;
  for (const auto& [name, child] : properties_) {
    // A null where a default exists counts as absent.
    if (!child->default_.is_discarded() && (!value.contains(name) || value[name].is_null()))
      value[name] = child->default_;
    if (const auto found = value.find(name); found != value.end()) child->apply_defaults(*found);
  }
  if (additional_ != nullptr)
    for (auto& [name, element] : value.items())
      if (!properties_.contains(name)) additional_->apply_defaults(element);
}

std::vector<Violation> Schema::validate(const Json& value, const Json* old_value) const {
  Violations found;
  check(value, old_value, Place(), found);
  static const std::set<std::string> kBlocking = {"FieldValueRequired", "FieldValueTypeInvalid",
                                                  "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany"};
  // Rules are evaluated only on values of the right shape.
  if (std::any_of(found.begin(), found.end(), [](const auto& one) { return kBlocking.contains(one.reason); }))
    found.push_back({"<nil>", "FieldValueInvalid",
                     "Invalid value: null: some validation rules were not checked because the object was invalid; "
                     "correct the existing errors to complete validation"});
  else
    check_rules(value, old_value, Place(), found);
  return found;
}

void Schema::check(const Json& value, const Json* old_value, const Place& place, Violations& found) const {
  if (old_value != nullptr && *old_value == value) return;  // it was right when it was written
  if (nullable_ && value.is_null()) return;
  if (!check_type(value, place, found)) return;
  if (enum_.is_array() && std::find(enum_.begin(), enum_.end(), value) == enum_.end()) {
    std::string supported;
    for (const Json& choice : enum_) supported += (supported.empty() ? "" : ", ") + choice.dump();
    found.push_back({place.to_string(), "FieldValueNotSupported",
                     "Unsupported value: " + value.dump() + ": supported values: " + supported});
  }
  if (value.is_string()) check_text(value.get_ref<const std::string&>(), place, found);
  if (value.is_number()) check_number(value, place, found);
  if (value.is_object()) check_members(value, old_value, place, found);
  if (value.is_array()) check_elements(value, old_value, place, found);
}

bool Schema::check_type(const Json& value, const Place& place, Violations& found) const {
  bool fits = true;
  if (int_or_string_)
    fits = value.is_number_integer() || value.is_string();
  else if (type_ == "number")
    fits = value.is_number();
  else if (!type_.empty())
    fits = type_name(value) == type_;
  if (!fits)
    found.push_back({place.to_string(), "FieldValueTypeInvalid",
                     "Invalid value: \"" + type_name(value) + "\": " + place.to_string() + " in body must be of type " +
                         (int_or_string_ ? "integer,string" : type_) + ": \"" + type_name(value) + "\""});
  return fits;
}

void Schema::check_text(const std::string& text, const Place& place, Violations& found) const {
  const auto refuse = [&](std::string reason, const std::string& why) {
    found.push_back({place.to_string(), std::move(reason),
                     "Invalid value: \"" + text + "\": " + place.to_string() + " in body " + why});
  };
  const auto bound = [&](const char* name) { return bounds_.find(name); };
  const auto length = static_cast<double>(length_of(text));
  if (bound("minLength") != bounds_.end() && length < bound("minLength")->second)
    refuse("FieldValueInvalid", "should be at least the minimum length");
  if (bound("maxLength") != bounds_.end() && length > bound("maxLength")->second)
    refuse("FieldValueTooLong", "may not be longer than the maximum length");
  if (pattern_ && !std::regex_search(text, *pattern_))
    refuse("FieldValueInvalid", "should match '" + pattern_text_ + "'");
  if (is_time_ && !parse_time(text)) refuse("FieldValueInvalid", "must be of type date-time");
}

void Schema::check_number(const Json& value, const Place& place, Violations& found) const {
  const auto refuse = [&](const std::string& why) {
    found.push_back({place.to_string(), "FieldValueInvalid",
                     "Invalid value: " + value.dump() + ": " + place.to_string() + " in body " + why});
  };
  const double number = value.get<double>();
  const auto minimum = bounds_.find("minimum");
  const auto maximum = bounds_.find("maximum");
  if (minimum != bounds_.end() && number < minimum->second)
    refuse("should be greater than or equal to " + std::to_string(static_cast<std::int64_t>(minimum->second)));
  if (maximum != bounds_.end() && number > maximum->second)
    refuse("should be less than or equal to " + std::to_string(static_cast<std::int64_t>(maximum->second)));
}

void Schema::check_members(const Json& value, const Json* old_value, const Place& place, Violations& found) const {
  for (const std::string& name : required_)
    if (!value.contains(name))
      found.push_back({place.member(name).to_string(), "FieldValueRequired", "Required value"});
  if (const auto most = bounds_.find("maxProperties");
      most != bounds_.end() && static_cast<double>(value.size()) > most->second)
    found.push_back({place.to_string(), "FieldValueTooMany",
                     "Too many: must have at most " + std::to_string(static_cast<int>(most->second)) + " items"});
  for (const auto& [name, element] : value.items())
    if (const Schema* child = member(name))
      child->check(element, member_of(old_value, name), place.member(name), found);
}

void Schema::check_elements(const Json& value, const Json* old_value, const Place& place, Violations& found) const {
  const auto size = static_cast<double>(value.size());
  if (const auto most = bounds_.find("maxItems"); most != bounds_.end() && size > most->second)
    found.push_back({place.to_string(), "FieldValueTooMany",
                     "Too many: must have at most " + std::to_string(static_cast<int>(most->second)) + " items"});
  if (const auto least = bounds_.find("minItems"); least != bounds_.end() && size < least->second)
    found.push_back({place.to_string(), "FieldValueInvalid",
                     "Invalid value: " + place.to_string() + " in body should have more items"});
  if (items_ == nullptr) return;
  std::set<std::string> seen;
  for (std::size_t index = 0; index < value.size(); ++index) {
    const Place of_element = place.element(index);
    if (is_list_map() && value[index].is_object()) {
      Json keys = Json::object();
      for (const std::string& key : list_map_keys_) keys[key] = value[index].value(key, Json());
      if (!seen.insert(keys.dump()).second)
        found.push_back({of_element.to_string(), "FieldValueDuplicate", "Duplicate value: " + keys.dump()});
    }
    items_->check(value[index], same_element(old_value, value[index], list_map_keys_), of_element, found);
  }
}

void Schema::check_rules(const Json& value, const Json* old_value, const Place& place, Violations& found) const {
  if (old_value != nullptr && *old_value == value) return;
  for (const Rule& rule : rules_) {
    if (rule.expression.mentions_old_self() && old_value == nullptr) continue;
    const Result<bool> holds = rule.expression.holds(value, old_value);
    if (holds.ok() && *holds) continue;
    const std::string message = (holds.ok() ? "" : holds.error().message() + " evaluating rule: ") + rule.message;
    // A rule that has no value is reported where it stands.
    const bool elsewhere = holds.ok() && !rule.field_path.empty();
    const std::string below = elsewhere ? rule.field_path.substr(1) : "";
    const Place told = elsewhere ? place.member(below) : place;
    found.push_back({told.to_string(), rule.reason,
                     (rule.reason == "FieldValueForbidden" ? "Forbidden: " : "Invalid value: ") + message});
  }
  check_rules_below(value, old_value, place, found);
}

void Schema::check_rules_below(const Json& value, const Json* old_value, const Place& place, Violations& found) const {
  if (value.is_object()) {
    for (const auto& [name, element] : value.items()) {
      const Schema* child = member(name);
      if (child == nullptr) continue;
      child->check_rules(element, member_of(old_value, name), place.member(name), found);
    }
  }
  if (!value.is_array() || items_ == nullptr) return;
  for (std::size_t index = 0; index < value.size(); ++index) {
    const Json* old_element = same_element(old_value, value[index], list_map_keys_);
    items_->check_rules(value[index], old_element, place.element(index), found);
  }
}

}  // namespace sluice::kube::fake
