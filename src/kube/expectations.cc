#include "src/kube/expectations.h"

#include <utility>

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

bool is_being_deleted(const Json& object) {
  const auto metadata = object.find("metadata");
  return metadata != object.end() && metadata->is_object() && metadata->contains("deletionTimestamp");
}

}  // namespace

void Expectations::written(const ObjectKey& owner, const Store& store, const Json& stored) {
  std::string version = resource_version_of(stored);
  if (version.empty()) return;
  remember(owner, {&store, key_of(stored), uid_of(stored), std::move(version), clock_.now() + patience_});
}

void Expectations::removed(const ObjectKey& owner, const Store& store, const ObjectKey& key, const std::string& uid) {
  remember(owner, {&store, key, uid, "", clock_.now() + patience_});
}

void Expectations::remember(const ObjectKey& owner, Write write) {
  std::lock_guard lock(mutex_);
  std::vector<Write>& writes = writes_[owner];
  if (writes.size() >= max_writes_) writes.erase(writes.begin());
  writes.push_back(std::move(write));
}

bool Expectations::is_seen(const Write& write) {
  const ObjectPointer seen = write.store->get(write.key);
  const bool is_same = seen && uid_of(*seen) == write.uid;
  if (write.version.empty()) return !is_same || is_being_deleted(*seen);
  if (is_same && !is_older_version(resource_version_of(*seen), write.version)) return true;
  // It may be gone again already, which shows only in how far the informer has come.
  const std::string reached = write.store->version();
  return !reached.empty() && !is_older_version(reached, write.version);
}

bool Expectations::satisfied(const ObjectKey& owner) {
  std::lock_guard lock(mutex_);
  const auto found = writes_.find(owner);
  if (found == writes_.end()) return true;
  const Clock::TimePoint now = clock_.now();
  std::erase_if(found->second, [&](const Write& write) { return now >= write.give_up_at || is_seen(write); });
  if (!found->second.empty()) return false;
  writes_.erase(found);
  return true;
}

void Expectations::forget(const ObjectKey& owner) {
  std::lock_guard lock(mutex_);
  writes_.erase(owner);
}

}  // namespace sluice::kube
