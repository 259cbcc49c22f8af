#include "src/kube/store.h"

#include <nlohmann/json.hpp>

#include "src/kube/resource_version.h"

namespace sluice::kube {
namespace {

std::string uid_of(const Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return {};
  const auto uid = metadata->find("uid");
  return uid != metadata->end() && uid->is_string() ? uid->get<std::string>() : std::string();
}

}  // namespace

StoredObject::StoredObject(ObjectPointer object)
    : version_(resource_version_of(*object)), state_(uid_of(*object) + " " + version_), object_(std::move(object)) {}

ObjectPointer Store::get(const ObjectKey& key) const {
  const StoredPointer stored = find(key);
  return stored ? stored->object() : nullptr;
}

Store::Objects Store::snapshot() const {
  Stored stored;
  {
    std::lock_guard lock(mutex_);
    stored = objects_;
  }
  Objects objects;
  for (const auto& [key, object] : stored) objects.emplace_hint(objects.end(), key, object->object());
  return objects;
}

std::size_t Store::size() const {
  std::lock_guard lock(mutex_);
  return objects_.size();
}

std::string Store::version() const {
  std::lock_guard lock(mutex_);
  return version_;
}

StoredPointer Store::find(const ObjectKey& key) const {
  std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

void Store::put(const ObjectKey& key, StoredPointer object) {
  std::lock_guard lock(mutex_);
  objects_.insert_or_assign(key, std::move(object));
}

void Store::erase(const ObjectKey& key) {
  std::lock_guard lock(mutex_);
  objects_.erase(key);
}

void Store::set_version(std::string_view version) {
  std::lock_guard lock(mutex_);
  version_ = version;
}

void Store::commit(
    const std::function<void(const ObjectKey&, const StoredPointer& before, const StoredPointer& after)>& tell) {
  const Stored after = std::exchange(staged_, {});
  Stored before;
  {
    std::lock_guard lock(mutex_);
    before = std::exchange(objects_, after);
  }
  for (const auto& [key, object] : before) {
    if (after.count(key) == 0) tell(key, object, nullptr);
  }
  for (const auto& [key, object] : after) {
    const auto old = before.find(key);
    if (old == before.end()) {
      tell(key, nullptr, object);
    } else if (!old->second->is_same_state(*object)) {
      tell(key, old->second, object);
    }
  }
}

}  // namespace sluice::kube
