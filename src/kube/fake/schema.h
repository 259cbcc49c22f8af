// A structural OpenAPI schema of a CustomResourceDefinition, as the API server applies it to written objects: prune
// unknown fields, fill in defaults, check values, check x-kubernetes-validations.
//
// Known keywords: type, nullable, properties, required, additionalProperties, items, enum, default, minimum, maximum,
// minLength, maxLength, minItems, maxItems, maxProperties, pattern, format date-time, x-kubernetes-int-or-string,
// x-kubernetes-preserve-unknown-fields, x-kubernetes-list-type and -list-map-keys, x-kubernetes-validations (rule,
// message, fieldPath, reason). Any other constraint is refused when the schema is read. What an
// update leaves as it was is not checked again (ratcheting).
//
// Thread safety: immutable after construction.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/kube/fake/cel.h"

namespace sluice::kube::fake {

// One cause of a 422, as in Status.details.causes.
struct Violation {
  std::string field;   // "spec.dataWorkers.min"
  std::string reason;  // "FieldValueInvalid"
  std::string message;
};

// Where a value stands in an object. It is put into words only when something is to be said of it.
// REQUIRES: the place around it outlives it.
class Place {
 public:
  Place() = default;  // of the object as a whole
  Place member(const std::string& name) const { return {this, &name, 0}; }
  Place element(std::size_t index) const { return {this, nullptr, index}; }

  // "spec.containers[0].image"; "" for the whole object.
  std::string to_string() const;

 private:
  Place(const Place* around, const std::string* name, std::size_t index)
      : around_(around), name_(name), index_(index) {}

  const Place* around_ = nullptr;
  const std::string* name_ = nullptr;  // of a member
  std::size_t index_ = 0;              // of an element
};

class Schema {
 public:
  // Errors: InvalidArgument for a keyword or a CEL rule that this cannot apply.
  static Result<std::shared_ptr<const Schema>> read(const Json& openapi);

  // What prune_object would drop: "spec.dropped".
  std::vector<std::string> unknown_fields(const Json& object) const;

  // Of an object as a whole, whose apiVersion, kind and metadata are left alone.
  void prune_object(Json& object) const;
  void apply_defaults(Json& value) const;
  // `old_value` is null on creation: transition rules do not apply then.
  std::vector<Violation> validate(const Json& value, const Json* old_value) const;

  // What server-side apply needs to know of the shape. nullptr where nothing is known about the member.
  const Schema* member(const std::string& name) const;
  const Schema* items() const { return items_.get(); }
  bool is_list_map() const { return !list_map_keys_.empty(); }
  const std::vector<std::string>& list_map_keys() const { return list_map_keys_; }

 private:
  struct Rule {
    CelExpression expression;
    std::string message;
    std::string field_path;
    std::string reason;
  };
  using Violations = std::vector<Violation>;

  Result<void> read_bounds(const Json& openapi);
  Result<void> read_children(const Json& openapi);
  Result<void> read_rules(const Json& openapi);
  void prune(Json& value) const;
  void find_unknown(const Json& value, const Place& place, std::vector<std::string>& found) const;
  void find_unknown_member(const std::string& name, const Json& value, const Place& around,
                           std::vector<std::string>& found) const;
  void check(const Json& value, const Json* old_value, const Place& place, Violations& found) const;
  bool check_type(const Json& value, const Place& place, Violations& found) const;
  void check_text(const std::string& text, const Place& place, Violations& found) const;
  void check_number(const Json& value, const Place& place, Violations& found) const;
  void check_members(const Json& value, const Json* old_value, const Place& place, Violations& found) const;
  void check_elements(const Json& value, const Json* old_value, const Place& place, Violations& found) const;
  void check_rules(const Json& value, const Json* old_value, const Place& place, Violations& found) const;
  void check_rules_below(const Json& value, const Json* old_value, const Place& place, Violations& found) const;

  std::string type_;  // empty: not constrained
  bool nullable_ = false;
  bool int_or_string_ = false;
  bool preserves_unknown_ = false;
  bool is_time_ = false;
  std::map<std::string, std::shared_ptr<const Schema>> properties_;
  std::shared_ptr<const Schema> additional_;
  std::shared_ptr<const Schema> items_;
  std::vector<std::string> required_;
  std::vector<std::string> list_map_keys_;
  Json enum_;                             // array, or null
  Json default_;                          // discarded: none
  std::map<std::string, double> bounds_;  // "minLength" and so on
  std::string pattern_text_;
  std::optional<std::regex> pattern_;
  std::vector<Rule> rules_;
};

}  // namespace sluice::kube::fake
