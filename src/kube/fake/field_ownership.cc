#include "src/kube/fake/field_ownership.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice::kube::fake {
namespace {

constexpr char kSeparator = '\x1f';
constexpr const char* kIdentity[] = {"apiVersion", "kind"};
constexpr const char* kServerMetadata[] = {"name",          "namespace",         "uid",
                                           "generation",    "resourceVersion",   "creationTimestamp",
                                           "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"};

// Leaf -> its value. An element of a keyed list is a leaf of its own, too (its value: null), so that it can be owned.
using Fields = std::map<std::string, const Json*>;

std::string element_segment(const Json& element, const std::vector<std::string>& keys) {
  Json identity = Json::object();
  for (const std::string& key : keys) identity[key] = element.is_object() ? element.value(key, Json()) : element;
  return "k:" + identity.dump();
}

void collect(const Json& value, const std::string& path, const Shape& shape, Fields& fields) {
  if (value.is_object() && !value.empty() && !shape.is_atomic_map()) {
    for (const auto& [name, member] : value.items())
      collect(member, path + kSeparator + "f:" + name, shape.member(name), fields);
    return;
  }
  const auto keys = value.is_array() && !value.empty() ? shape.list_keys() : std::nullopt;
  if (!keys) {
    fields[path] = &value;
    return;
  }
  for (const Json& element : value) {
    const std::string place = path + kSeparator + element_segment(element, *keys);
    fields[place] = nullptr;
    if (element.is_object()) collect(element, place, shape.element(), fields);
  }
}

Fields fields_of(const Json& object, const Shape& shape) {
  Fields fields;
  collect(object, "", shape, fields);
  return fields;
}

bool same_value(const Json* a, const Json* b) { return a == b || (a != nullptr && b != nullptr && *a == *b); }

Json* find_element(Json& list, const Json& element, const std::vector<std::string>& keys) {
  const std::string wanted = element_segment(element, keys);
  for (Json& candidate : list)
    if (element_segment(candidate, keys) == wanted) return &candidate;
  return nullptr;
}

void merge(Json& live, const Json& configuration, const Shape& shape) {
  if (live.is_object() && configuration.is_object() && !shape.is_atomic_map()) {
    for (const auto& [name, member] : configuration.items()) {
      if (live.contains(name))
        merge(live[name], member, shape.member(name));
      else
        live[name] = member;
    }
    return;
  }
  const auto keys = live.is_array() && configuration.is_array() ? shape.list_keys() : std::nullopt;
  if (!keys) {
    live = configuration;
    return;
  }
  for (const Json& element : configuration) {
    if (Json* same = find_element(live, element, *keys))
      merge(*same, element, shape.element());
    else
      live.push_back(element);
  }
}

// Removes the owned leaves of `dropped` from `value`; what becomes empty by that goes, too.
void drop(Json& value, const std::string& path, const Shape& shape, const FieldSet& dropped) {
  const auto concerned = [&](const std::string& place) {
    const auto next = dropped.lower_bound(place);
    return next != dropped.end() && next->starts_with(place);
  };
  if (value.is_object()) {
    for (auto entry = value.begin(); entry != value.end();) {
      const std::string place = path + kSeparator + "f:" + entry.key();
      if (concerned(place) && !dropped.contains(place)) {
        const bool was_empty = entry->empty();
        drop(*entry, place, shape.member(entry.key()), dropped);
        if (!was_empty && entry->is_structured() && entry->empty()) {
          entry = value.erase(entry);
          continue;
        }
      }
      entry = dropped.contains(place) ? value.erase(entry) : std::next(entry);
    }
    return;
  }
  const auto keys = value.is_array() ? shape.list_keys() : std::nullopt;
  if (!keys) return;
  for (auto element = value.begin(); element != value.end();) {
    const std::string place = path + kSeparator + element_segment(*element, *keys);
    if (dropped.contains(place)) {
      element = value.erase(element);
      continue;
    }
    if (concerned(place)) drop(*element, place, shape.element(), dropped);
    ++element;
  }
}

// ".spec.replicas", as the API server names a field in a conflict.
std::string readable(const std::string& path) {
  std::string text;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(kSeparator, at + 1), path.size());
    const std::string segment = path.substr(at + 1, end - at - 1);
    text += segment.starts_with("f:") ? "." + segment.substr(2) : "[" + segment.substr(2) + "]";
    at = end;
  }
  return text;
}

Json without_identity(Json configuration) {
  for (const char* name : kIdentity) configuration.erase(name);
  if (const auto metadata = configuration.find("metadata"); metadata != configuration.end()) {
    for (const char* name : kServerMetadata) metadata->erase(name);
    if (metadata->empty()) configuration.erase(metadata);
  }
  return configuration;
}

const std::map<std::string, std::vector<std::string>>& builtin_list_keys() {
  static const std::map<std::string, std::vector<std::string>> kKeys = {
      {"ownerReferences", {"uid"}},    {"conditions", {"type"}},       {"containers", {"name"}},
      {"initContainers", {"name"}},    {"volumes", {"name"}},          {"env", {"name"}},
      {"volumeMounts", {"mountPath"}}, {"imagePullSecrets", {"name"}}, {"finalizers", {}}};
  return kKeys;
}

}  // namespace

Shape Shape::of_object(const Schema* schema, std::string kind) {
  Shape shape;
  shape.kind_ = std::move(kind);
  shape.by_schema_ = schema != nullptr;
  shape.schema_ = schema;
  return shape;
}

Shape Shape::member(const std::string& name) const {
  Shape shape = *this;
  shape.parent_ = name_;
  shape.name_ = name;
  // ObjectMeta has the same shape everywhere.
  if (name == "metadata" && name_.empty()) shape.by_schema_ = false;
  shape.schema_ = shape.by_schema_ && schema_ != nullptr ? schema_->member(name) : nullptr;
  return shape;
}

Shape Shape::element() const {
  Shape shape = *this;
  shape.schema_ = by_schema_ && schema_ != nullptr ? schema_->items() : nullptr;
  return shape;
}

std::optional<std::vector<std::string>> Shape::list_keys() const {
  if (by_schema_) {
    if (schema_ == nullptr || !schema_->is_list_map()) return std::nullopt;
    return schema_->list_map_keys();
  }
  if (name_ == "ports") return std::vector<std::string>{kind_ == "Service" ? "port" : "containerPort", "protocol"};
  const auto found = builtin_list_keys().find(name_);
  if (found == builtin_list_keys().end()) return std::nullopt;
  return found->second;
}

bool Shape::is_atomic_map() const {
  if (by_schema_) return false;
  return (kind_ == "Service" && name_ == "selector" && parent_ == "spec") || name_ == "nodeSelector";
}

FieldOwnership::Outcome FieldOwnership::apply(const Json* live, const Json& configuration, const Applier& applier,
                                              bool force, const Shape& shape) {
  const Json wanted = without_identity(configuration);
  const Fields wanted_fields = wanted.empty() ? Fields() : fields_of(wanted, shape);
  const Json nothing = Json::object();
  const Json before = without_identity(live != nullptr ? *live : nothing);
  const Fields live_fields = before.empty() ? Fields() : fields_of(before, shape);
  if (!others_known_)
    for (const auto& [path, value] : live_fields) others_.insert(path);
  others_known_ = true;

  // 1. Conflicts: what others own and we say otherwise.
  Outcome outcome;
  FieldSet taken;
  for (const auto& [path, value] : wanted_fields) {
    const auto now = live_fields.find(path);
    if (now == live_fields.end() || same_value(now->second, value)) continue;
    bool owned = others_.contains(path);
    for (const auto& [other, fields] : appliers_) owned = owned || (other != applier && fields.contains(path));
    if (owned) taken.insert(path);
  }
  if (!taken.empty() && !force) {
    for (const std::string& path : taken) outcome.conflicts.push_back(readable(path));
    return outcome;
  }
  for (const std::string& path : taken) {
    others_.erase(path);
    for (auto& [other, fields] : appliers_)
      if (other != applier) fields.erase(path);
  }

  // 2. Fields that this applier no longer mentions and no other manager owns.
  FieldSet& ours = appliers_[applier];
  FieldSet dropped;
  for (const std::string& path : ours) {
    bool kept = wanted_fields.contains(path) || others_.contains(path);
    for (const auto& [other, fields] : appliers_) kept = kept || (other != applier && fields.contains(path));
    if (!kept) dropped.insert(path);
  }
  ours.clear();
  for (const auto& [path, value] : wanted_fields) ours.insert(path);

  // 3. Merge.
  outcome.object = live != nullptr ? *live : Json::object();
  merge(outcome.object, wanted, shape);
  drop(outcome.object, "", shape, dropped);
  return outcome;
}

void FieldOwnership::note_update(const Json& before, const Json& after, const Shape& shape) {
  if (!others_known_) return;
  const Json old_object = without_identity(before);
  const Json new_object = without_identity(after);
  const Fields old_fields = fields_of(old_object, shape);
  const Fields new_fields = fields_of(new_object, shape);
  for (const auto& [path, value] : new_fields) {
    const auto old = old_fields.find(path);
    if (old != old_fields.end() && same_value(old->second, value)) continue;
    for (auto& [applier, fields] : appliers_) fields.erase(path);
    others_.insert(path);
  }
  for (const auto& [path, value] : old_fields) {
    if (new_fields.contains(path)) continue;
    for (auto& [applier, fields] : appliers_) fields.erase(path);
    others_.erase(path);
  }
}

}  // namespace sluice::kube::fake
