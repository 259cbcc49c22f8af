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

const std::string kMetadata = std::string(1, kSeparator) + "f:metadata";

// Leaf -> its value. An element of a keyed list is a leaf of its own, too (its value: null), so that it can be owned.
using Fields = std::map<std::string, const Json*>;

std::string element_segment(const Json& element, const std::vector<std::string>& keys) {
  Json identity = Json::object();
  for (const std::string& key : keys) identity[key] = element.is_object() ? element.value(key, Json()) : element;
  return "k:" + identity.dump();
}

template <std::size_t count>
bool is_among(const char* const (&names)[count], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Whether this member of an object, or of its metadata, says which object it is, or is the server's alone.
bool is_nobodys(const std::string& path, std::string_view name) {
  return path.empty() ? is_among(kIdentity, name) : path == kMetadata && is_among(kServerMetadata, name);
}

bool has_members(const Json& value, const Shape& shape) {
  return value.is_object() && !value.empty() && !shape.is_atomic_map();
}

const std::vector<std::string>* element_keys(const Json& value, const Shape& shape) {
  return value.is_array() && !value.empty() ? shape.list_keys() : nullptr;
}

std::string member_path(const std::string& path, const std::string& name) { return path + kSeparator + "f:" + name; }

void collect(const Json& value, const std::string& path, const Shape& shape, Fields& fields) {
  if (has_members(value, shape)) {
    for (const auto& [name, member] : value.items())
      if (!is_nobodys(path, name)) collect(member, member_path(path, name), shape.member(name), fields);
    return;
  }
  const auto* keys = element_keys(value, shape);
  if (keys == nullptr) {
    if (!path.empty()) fields[path] = &value;
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

// The fields of an object before and after a change: at least those that differ.
struct ChangedFields {
  bool with_removed = true;  // false: without the fields of members that are there before only
  Fields before = {};
  Fields after = {};
};

// Adds those below `path`. What is the same in both is passed over as a whole. Null: nothing is there.
void find_changes(const Json* before, const Json* after, const std::string& path, const Shape& shape,
                  ChangedFields& found) {
  if (same_value(before, after)) return;
  const bool both_have_members =
      before != nullptr && after != nullptr && has_members(*before, shape) && has_members(*after, shape);
  if (!both_have_members) {
    if (before != nullptr) collect(*before, path, shape, found.before);
    if (after != nullptr) collect(*after, path, shape, found.after);
    return;
  }
  const auto member_of = [](const Json& object, const std::string& name) {
    const auto member = object.find(name);
    return member == object.end() ? nullptr : &*member;
  };
  for (const auto& [name, member] : after->items())
    if (!is_nobodys(path, name))
      find_changes(member_of(*before, name), &member, member_path(path, name), shape.member(name), found);
  if (!found.with_removed) return;
  for (const auto& [name, member] : before->items())
    if (!is_nobodys(path, name) && !after->contains(name))
      collect(member, member_path(path, name), shape.member(name), found.before);
}

bool is_same_element(const Json& a, const Json& b, const std::vector<std::string>& keys) {
  if (!a.is_object() || !b.is_object()) return element_segment(a, keys) == element_segment(b, keys);
  return std::all_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return a.value(key, Json()) == b.value(key, Json()); });
}

Json* find_element(Json& list, const Json& element, const std::vector<std::string>& keys) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Json& each) { return is_same_element(each, element, keys); });
  return found == list.end() ? nullptr : &*found;
}

void merge(Json& live, const Json& configuration, const Shape& shape) {
  if (live.is_object() && configuration.is_object() && !shape.is_atomic_map()) {
    for (const auto& [name, member] : configuration.items()) {
      if (const auto there = live.find(name); there != live.end())
        merge(*there, member, shape.member(name));
      else
        live[name] = member;
    }
    return;
  }
  const auto* keys = live.is_array() && configuration.is_array() ? shape.list_keys() : nullptr;
  if (keys == nullptr) {
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
  const auto* keys = value.is_array() ? shape.list_keys() : nullptr;
  if (keys == nullptr) return;
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

using ListKeys = std::map<std::string, std::vector<std::string>, std::less<>>;

const ListKeys& builtin_list_keys() {
  static const ListKeys kKeys = {
      {"ownerReferences", {"uid"}},    {"conditions", {"type"}},       {"containers", {"name"}},
      {"initContainers", {"name"}},    {"volumes", {"name"}},          {"env", {"name"}},
      {"volumeMounts", {"mountPath"}}, {"imagePullSecrets", {"name"}}, {"finalizers", {}}};
  return kKeys;
}

}  // namespace

Shape Shape::of_object(const Schema* schema, std::string_view kind) {
  Shape shape;
  shape.kind_ = kind;
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

const std::vector<std::string>* Shape::list_keys() const {
  static const std::vector<std::string> kOfServicePorts = {"port", "protocol"};
  static const std::vector<std::string> kOfContainerPorts = {"containerPort", "protocol"};
  if (by_schema_) return schema_ != nullptr && schema_->is_list_map() ? &schema_->list_map_keys() : nullptr;
  if (name_ == "ports") return kind_ == "Service" ? &kOfServicePorts : &kOfContainerPorts;
  const auto found = builtin_list_keys().find(name_);
  return found == builtin_list_keys().end() ? nullptr : &found->second;
}

bool Shape::is_atomic_map() const {
  if (by_schema_) return false;
  return (kind_ == "Service" && name_ == "selector" && parent_ == "spec") || name_ == "nodeSelector";
}

FieldOwnership::Outcome FieldOwnership::apply(const Json* live, Json configuration, const Applier& applier, bool force,
                                              const Shape& shape) {
  const Json wanted = without_identity(std::move(configuration));
  const Fields wanted_fields = fields_of(wanted, shape);
  if (!others_known_ && live != nullptr)
    for (const auto& [path, value] : fields_of(*live, shape)) others_.insert(path);
  others_known_ = true;

  // 1. Conflicts: what others own and we say otherwise.
  Outcome outcome;
  FieldSet taken;
  ChangedFields changed{.with_removed = false};
  if (live != nullptr) find_changes(live, &wanted, "", shape, changed);
  for (const auto& [path, value] : changed.after) {
    const auto now = changed.before.find(path);
    if (now == changed.before.end() || same_value(now->second, value)) continue;
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
  if (!dropped.empty()) drop(outcome.object, "", shape, dropped);
  return outcome;
}

void FieldOwnership::note_update(const Json& before, const Json& after, const Shape& shape) {
  if (!others_known_) return;
  ChangedFields changed;
  find_changes(&before, &after, "", shape, changed);
  for (const auto& [path, value] : changed.after) {
    const auto old = changed.before.find(path);
    if (old != changed.before.end() && same_value(old->second, value)) continue;
    for (auto& [applier, fields] : appliers_) fields.erase(path);
    others_.insert(path);
  }
  for (const auto& [path, value] : changed.before) {
    if (changed.after.contains(path)) continue;
    for (auto& [applier, fields] : appliers_) fields.erase(path);
    others_.erase(path);
  }
}

}  // namespace sluice::kube::fake
