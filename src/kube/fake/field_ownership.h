// Server-side apply: who owns which field of an object, and what an apply changes (KEP-555; structured-merge-diff).
//
//   merged   = live object with everything the configuration says
//   dropped  = fields this applier owned, no longer mentions, and no other manager owns: they are removed
//   conflict = a field that another manager owns, with another value: refused, or taken over with force
// Every manager that does not apply (create, patch) counts as one, "others": who of them it was decides nothing here.
// managedFields are not rendered into objects.
//
// Thread safety: values; none beyond that.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/kube/fake/schema.h"

namespace sluice::kube::fake {

// How the value at one place of an object is merged: by the CRD's schema, or by the built-in types' well-known lists.
class Shape {
 public:
  // `schema` null: a built-in kind.
  // REQUIRES: the texts outlive the shape.
  static Shape of_object(const Schema* schema, std::string_view kind);

  Shape member(const std::string& name) const;
  Shape element() const;
  // Of a list: the members that identify an element; null when the list is one value (atomic).
  const std::vector<std::string>* list_keys() const;
  bool is_atomic_map() const;

 private:
  std::string_view kind_;
  std::string_view name_;    // of the member this is, or whose element this is
  std::string_view parent_;  // name of the member around it
  bool by_schema_ = false;
  const Schema* schema_ = nullptr;
};

// A path's segments are separated by '\x1f'; list elements are identified by their keys.
using FieldSet = std::set<std::string>;

class FieldOwnership {
 public:
  struct Applier {
    std::string manager;
    std::string subresource;
    friend auto operator<=>(const Applier&, const Applier&) = default;
  };
  struct Outcome {
    Json object;
    std::vector<std::string> conflicts;  // not empty: nothing was changed. Each is `".spec.replicas"`.
  };

  // `live` null: the object does not exist yet.
  Outcome apply(const Json* live, Json configuration, const Applier& applier, bool force, const Shape& shape);

  // A write that was no apply, or a change by the server itself.
  void note_update(const Json& before, const Json& after, const Shape& shape);

 private:
  std::map<Applier, FieldSet> appliers_;
  FieldSet others_;
  bool others_known_ = false;  // before the first apply nothing is recorded: others own all that is there
};

}  // namespace sluice::kube::fake
