// The part of ApiServer that changes stored objects: creation, updates, deletion. The verbs are in api_server.cc.
#include <algorithm>
#include <cstdio>

#include "src/kube/fake/api_server.h"
#include "src/kube/fake/pod_resize.h"
#include "src/kube/timestamp.h"

namespace sluice::kube::fake {
namespace {

// The fields that a client cannot change, whatever it sends.
constexpr const char* kUnchangeableMetadata[] = {"name",
                                                 "namespace",
                                                 "generateName",
                                                 "generation",
                                                 "creationTimestamp",
                                                 "deletionTimestamp",
                                                 "deletionGracePeriodSeconds"};

bool has(const Json& object, const char* member) {
  const auto found = object.find(member);
  return found != object.end() && !found->is_null() && !(found->is_structured() && found->empty());
}

void keep(Json& after, const Json& before, const char* member) {
  if (before.contains(member))
    after[member] = before[member];
  else
    after.erase(member);
}

// Everything but metadata and status: changes of it are counted by the generation.
bool same_intent(const Json& a, const Json& b) {
  const auto is_intent = [](const std::string& member) { return member != "metadata" && member != "status"; };
  const auto has_all_of = [&](const Json& one, const Json& other) {
    for (const auto& [member, value] : other.items())
      if (is_intent(member) && (!one.contains(member) || one.at(member) != value)) return false;
    return true;
  };
  return has_all_of(a, b) && has_all_of(b, a);
}

void check_owners(const Json& object, std::vector<Violation>& found) {
  const Json& metadata = object.at("metadata");
  int controllers = 0;
  for (const Json& owner : metadata.value("ownerReferences", Json::array())) {
    for (const char* member : {"apiVersion", "kind", "name", "uid"})
      if (!has(owner, member) || owner.at(member) == "")
        found.push_back({std::string("metadata.ownerReferences.") + member, "FieldValueInvalid",
                         "Invalid value: must not be empty"});
    if (owner.value("controller", false)) ++controllers;
  }
  if (controllers > 1)
    found.push_back({"metadata.ownerReferences", "FieldValueInvalid",
                     "Invalid value: only one reference can have Controller set to true"});
}

}  // namespace

std::vector<Violation> ApiServer::admit(const Kind& kind, Json& after, const Json* before) const {
  std::vector<Violation> found;
  if (kind.schema != nullptr) {
    kind.schema->prune_object(after);
    kind.schema->apply_defaults(after);
    if (checks_custom_kinds_) found = kind.schema->validate(after, before);
  }
  if (kind.set_defaults != nullptr) kind.set_defaults(after, before);
  if (kind.check != nullptr) kind.check(after, before, found);
  check_owners(after, found);
  return found;
}

Reply ApiServer::create_object(const Kind& kind, Json object, std::optional<FieldOwnership> fields) {
  Json& metadata = object["metadata"];
  if (metadata.value("resourceVersion", "") != "")
    return refuse(500, "InternalError", "resourceVersion should not be set on objects to be created");
  if (!has(metadata, "name")) {
    if (!has(metadata, "generateName"))
      return invalid_object(
          kind, "", {{"metadata.name", "FieldValueRequired", "Required value: name or generateName is required"}});
    char suffix[8];
    std::snprintf(suffix, sizeof suffix, "%05llx", static_cast<unsigned long long>(++names_ & 0xFFFFF));
    metadata["name"] = metadata["generateName"].get<std::string>() + suffix;
  }
  const ObjectKey key = key_of(object);
  if (kind.namespaced && storage_.find(kind_of(kNamespaces), {"", key.namespace_}) == nullptr)
    return no_such_object(kind_of(kNamespaces), key.namespace_);
  if (storage_.find(kind, key) != nullptr) return name_is_taken(kind, key.name);

  for (const char* member : {"deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"})
    metadata.erase(member);
  char uid[40];
  std::snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012llx", static_cast<unsigned long long>(++names_));
  metadata["uid"] = uid;
  metadata["creationTimestamp"] = format_time(clock_.wall_now());
  if (kind.counts_generations) metadata["generation"] = 1;
  object["apiVersion"] = kind.api_version();
  object["kind"] = kind.name;
  if (kind.has_status) object.erase("status");

  if (const auto violations = admit(kind, object, nullptr); !violations.empty())
    return invalid_object(kind, key.name, violations);
  const ObjectPointer stored = storage_.put(kind, key, std::move(object));
  if (fields) storage_.find(kind, key)->fields = std::move(*fields);
  changed();
  return {201, stored};
}

Reply ApiServer::update_object(Write write) {
  const Kind& kind = write.kind;
  const Json& before = *write.before;
  Json& after = write.after;
  const Json& old_metadata = before.at("metadata");

  // 1. Preconditions, and what cannot change.
  if (after["metadata"]["resourceVersion"] != old_metadata["resourceVersion"] &&
      has(after["metadata"], "resourceVersion"))
    return out_of_date(kind, write.key.name,
                       "the object has been modified; please apply your changes to the latest version and try again");
  if (after["metadata"]["uid"] != old_metadata["uid"] && has(after["metadata"], "uid"))
    return invalid_object(kind, write.key.name,
                          {{"metadata.uid", "FieldValueInvalid", "Invalid value: field is immutable"}});
  if (after["metadata"].value("deletionTimestamp", "") != old_metadata.value("deletionTimestamp", ""))
    return invalid_object(kind, write.key.name,
                          {{"metadata.deletionTimestamp", "FieldValueInvalid", "Invalid value: field is immutable"}});
  for (const char* member : kUnchangeableMetadata) keep(after["metadata"], old_metadata, member);
  for (const char* member : {"uid", "resourceVersion"}) keep(after["metadata"], old_metadata, member);
  after["apiVersion"] = kind.api_version();
  after["kind"] = kind.name;

  // 2. Each endpoint changes its own part.
  if (write.subresource == "status") {
    // Most writes are statuses, and most of an object is not its status: it is compared, not copied.
    for (auto member = after.begin(); member != after.end();)
      member = member.key() == "status" || before.contains(member.key()) ? std::next(member) : after.erase(member);
    for (const auto& [name, value] : before.items())
      if (name != "status" && after[name] != value) after[name] = value;
    if (after["status"].is_null()) after.erase("status");
  } else if (kind.has_status) {
    keep(after, before, "status");
  }

  // 3. Schema and rules.
  const bool is_resize = write.subresource == "resize";
  if (const auto violations = is_resize ? check_resize(before, after) : admit(kind, after, &before);
      !violations.empty())
    return invalid_object(kind, write.key.name, violations);
  if (is_resize) after = resized(before, after);

  // 4. Nothing new: nothing happens, but the owners of fields may have changed.
  Storage::Stored& stored = *storage_.find(kind, write.key);
  if (write.fields)
    stored.fields = std::move(*write.fields);
  else
    stored.fields.note_update(before, after, kind.shape());
  if (after == before) return {200, stored.object};

  if (kind.counts_generations && !same_intent(before, after))
    after["metadata"]["generation"] = old_metadata.value("generation", std::int64_t{0}) + 1;
  const ObjectPointer result = storage_.put(kind, write.key, std::move(after));
  changed();
  // 5. The last finalizer of a deleted object is gone: so is the object.
  const Json& metadata = result->at("metadata");
  const bool leaving = has(metadata, "deletionTimestamp") && !has(metadata, "finalizers") &&
                       metadata.value("deletionGracePeriodSeconds", 0) == 0;
  if (leaving) finish_removal(kind, write.key);
  return {200, result};
}

Reply ApiServer::remove_object(const Kind& kind, const ObjectKey& key, const RemoveOptions& options) {
  Storage::Stored* stored = storage_.find(kind, key);
  if (stored == nullptr) return no_such_object(kind, key.name);
  const Json& before = *stored->object;
  const Json& metadata = before.at("metadata");
  const auto check = [&](const std::string& name, const std::string& wanted,
                         const char* member) -> std::optional<Reply> {
    if (wanted.empty() || wanted == metadata.at(member)) return std::nullopt;
    return out_of_date(kind, key.name,
                       "the " + name + " in the precondition (" + wanted + ") does not match the " + name +
                           " in record (" + metadata.at(member).get<std::string>() + ")");
  };
  if (auto failed = check("UID", options.uid, "uid")) return *failed;
  if (auto failed = check("ResourceVersion", options.resource_version, "resourceVersion")) return *failed;

  // 1. What keeps the object: a grace period (pods that have started), finalizers, those of the propagation included.
  std::int64_t grace_seconds = 0;
  const std::string phase = before.value(Json::json_pointer("/status/phase"), "");
  if (kind.is_graceful && before.at("spec").contains("nodeName") && phase != "Succeeded" && phase != "Failed")
    grace_seconds = options.grace_period_seconds.value_or(before.at("spec").value("terminationGracePeriodSeconds", 30));
  Json finalizers = metadata.value("finalizers", Json::array());
  const auto add = [&](const char* finalizer) {
    if (std::find(finalizers.begin(), finalizers.end(), finalizer) == finalizers.end()) finalizers.push_back(finalizer);
  };
  if (options.propagation == Propagation::kForeground) add("foregroundDeletion");
  if (options.propagation == Propagation::kOrphan) add("orphan");
  if (grace_seconds == 0 && finalizers.empty()) return finish_removal(kind, key);

  // 2. Mark it. A second deletion can only shorten the grace period.
  const bool marked = has(metadata, "deletionTimestamp");
  const bool shortens = marked && grace_seconds < metadata.value("deletionGracePeriodSeconds", std::int64_t{0});
  Json after = before;
  if (!marked || shortens) {
    after["metadata"]["deletionTimestamp"] = format_time(clock_.wall_now() + std::chrono::seconds(grace_seconds));
    after["metadata"]["deletionGracePeriodSeconds"] = grace_seconds;
  }
  if (!marked && kind.counts_generations)
    after["metadata"]["generation"] = metadata.value("generation", std::int64_t{0}) + 1;
  if (!finalizers.empty()) after["metadata"]["finalizers"] = finalizers;
  if (after == before) return {200, stored->object};
  const ObjectPointer result = storage_.put(kind, key, std::move(after));
  changed();
  return {200, result};
}

Reply ApiServer::finish_removal(const Kind& kind, const ObjectKey& key) {
  const ObjectPointer last = storage_.find(kind, key)->object;
  storage_.erase(kind, key);
  changed();
  if (kind.name == "Namespace") remove_namespace_contents(key.name);
  return {200, last};
}

void ApiServer::remove_namespace_contents(const std::string& name) {
  for (const auto& kind : kinds_) {
    if (!kind->namespaced) continue;
    std::vector<ObjectKey> keys;
    for (const auto& [key, stored] : storage_.objects(*kind))
      if (key.namespace_ == name) keys.push_back(key);
    for (const ObjectKey& key : keys) storage_.erase(*kind, key);
  }
}

}  // namespace sluice::kube::fake
