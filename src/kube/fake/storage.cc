#include "src/kube/fake/storage.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/kube/json_text.h"

namespace sluice::kube::fake {

const std::string& StoredChange::after_text() const {
  if (!known_text) known_text = std::make_shared<const std::string>(text_of(*after));
  return *known_text;
}

Storage::Stored* Storage::find(const Kind& kind, const ObjectKey& key) {
  Objects& objects = objects_[&kind];
  const auto found = objects.find(key);
  return found == objects.end() ? nullptr : &found->second;
}

ObjectPointer Storage::put(const Kind& kind, const ObjectKey& key, Json object) {
  object["metadata"]["resourceVersion"] = std::to_string(++revision_);
  auto after = std::make_shared<const Json>(std::move(object));
  Stored& stored = objects_[&kind][key];
  history_.push_back({revision_, &kind, key, stored.object, after});
  stored.object = after;
  return after;
}

void Storage::erase(const Kind& kind, const ObjectKey& key) {
  Objects& objects = objects_[&kind];
  const auto found = objects.find(key);
  Json last = *found->second.object;
  last["metadata"]["resourceVersion"] = std::to_string(++revision_);
  history_.push_back(
      {revision_, &kind, key, found->second.object, std::make_shared<const Json>(std::move(last)), true});
  objects.erase(found);
}

Store::Objects Storage::state_at(const Kind& kind, std::uint64_t revision) const {
  Store::Objects state;
  for (const StoredChange& change : history_) {
    if (change.revision > revision) break;
    if (change.kind != &kind) continue;
    if (change.deleted)
      state.erase(change.key);
    else
      state[change.key] = change.after;
  }
  return state;
}

void Storage::compact(std::uint64_t revision) { compacted_revision_ = std::max(compacted_revision_, revision); }

}  // namespace sluice::kube::fake
