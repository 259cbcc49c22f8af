#include "src/kube/example/copies.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "src/base/logging.h"

namespace sluice::kube::example {
namespace {

constexpr const char* kManager = "copies-example";
constexpr int kMaxCopies = 10;

std::string label(const Json& object, const char* name) {
  const auto& labels = object.value("/metadata/labels"_json_pointer, Json::object());
  return labels.is_object() ? labels.value(name, "") : "";
}

std::string uid_of(const Json& object) { return object.value("/metadata/uid"_json_pointer, ""); }

// The owner says which incarnation a copy belongs to, and lets the garbage collector clean up after it.
std::string owner_uid(const Json& copy) { return copy.value("/metadata/ownerReferences/0/uid"_json_pointer, ""); }

Json desired_copy(const Json& original) {
  return {{"metadata",
           {{"ownerReferences",
             {{{"apiVersion", "v1"},
               {"kind", "ConfigMap"},
               {"name", key_of(original).name},
               {"uid", uid_of(original)},
               {"controller", true}}}}}},
          {"data", original.value("data", Json::object())}};
}

}  // namespace

std::vector<Action> reconcile(const World& world) {
  if (!world.original || world.original->at("metadata").contains("deletionTimestamp")) return {};
  const ObjectKey key = key_of(*world.original);
  const std::string wanted = label(*world.original, "example/copies");
  const int count = wanted.empty() ? 0 : std::clamp(std::atoi(wanted.c_str()), 0, kMaxCopies);
  const Json desired = desired_copy(*world.original);

  std::vector<Action> actions;
  std::vector<ObjectPointer> surplus = world.copies;
  for (int n = 0; n < count; ++n) {
    const std::string name = key.name + "-copy-" + std::to_string(n);
    const auto found =
        std::find_if(surplus.begin(), surplus.end(), [&](const auto& c) { return key_of(*c).name == name; });
    const bool is_right = found != surplus.end() && (*found)->value("data", Json::object()) == desired["data"];
    if (found != surplus.end()) surplus.erase(found);
    // Apply says which fields are the operator's: fields that others add to a copy stay.
    if (!is_right) actions.push_back({Verb::kApply, kConfigMaps, {key.namespace_, name}, desired, kManager});
  }
  for (const ObjectPointer& copy : surplus)  // only this incarnation: a namesake is not deleted
    actions.push_back({.verb = Verb::kDelete, .resource = kConfigMaps, .key = key_of(*copy), .uid = uid_of(*copy)});
  return actions;
}

Controller::Controller(const Client& client, const Clock& clock, Informer& config_maps)
    : client_(client), config_maps_(config_maps), queue_(clock) {
  config_maps.add_handler([this](const Change& change) {
    const Json& object = change.after ? *change.after : *change.before;
    const Json owners = object.value("/metadata/ownerReferences"_json_pointer, Json::array());
    // A change of a copy is work on its original.
    const std::string owner = owners.empty() ? change.key.name : owners[0].value("name", "");
    queue_.add({change.key.namespace_, owner}, change.priority());
  });
}

void Controller::run(std::stop_token stop) {
  if (!config_maps_.wait_for_sync(stop)) return;  // before that an absent object means nothing
  while (const auto key = queue_.get(stop)) work(*key, stop);
}

bool Controller::step(std::stop_token stop) {
  if (!config_maps_.has_synced()) return false;
  const auto key = queue_.try_get();
  if (key) work(*key, std::move(stop));
  return key.has_value();
}

void Controller::work(const ObjectKey& key, std::stop_token stop) {
  if (const auto done = bring(key, std::move(stop)); done.ok()) {
    queue_.forget(key);
  } else {
    log_warning("example", "reconcile failed", {{"object", key.to_string()}, {"error", done.error().to_string()}});
    queue_.add_rate_limited(key);
  }
  queue_.done(key);
}

Result<void> Controller::bring(const ObjectKey& key, std::stop_token stop) {
  // Between a write and its arrival in the cache the same actions may come once more: each is idempotent. An apply by
  // name changes nothing the second time, and a deletion names the uid.
  for (const Action& action : reconcile(see(key))) {
    const auto stored = perform(client_, action, stop);
    if (!stored.ok()) return stored.error();
  }
  return {};
}

World Controller::see(const ObjectKey& key) const {
  World world;
  world.original = config_maps_.store().get(key);
  if (!world.original) return world;
  for (const auto& [copy_key, copy] : config_maps_.store().snapshot()) {
    if (copy_key.namespace_ == key.namespace_ && owner_uid(*copy) == uid_of(*world.original))
      world.copies.push_back(copy);
  }
  return world;
}

}  // namespace sluice::kube::example
