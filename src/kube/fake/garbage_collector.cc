// kube-controller-manager's garbage collector, run by ApiServer::collect_garbage().
//
//   an owner waits in the foreground   its dependents go first, then its finalizer
//   an owner is to leave orphans       its dependents forget it, then its finalizer goes
//   every owner of an object is gone   the object goes; some are: it forgets them
// An owner is identified by its uid; a namesake is none.
#include <algorithm>
#include <map>

#include "src/kube/fake/api_server.h"

namespace sluice::kube::fake {
namespace {

bool has_finalizer(const Json& object, const char* finalizer) {
  const Json finalizers = object.at("metadata").value("finalizers", Json::array());
  return std::find(finalizers.begin(), finalizers.end(), finalizer) != finalizers.end();
}

void erase_finalizer(Json& object, const char* finalizer) {
  Json& finalizers = object["metadata"]["finalizers"];
  finalizers.erase(std::find(finalizers.begin(), finalizers.end(), finalizer));
  if (finalizers.empty()) object["metadata"].erase("finalizers");
}

bool is_leaving(const Json& object) { return object.at("metadata").contains("deletionTimestamp"); }

const Json& owners_of(const Json& object) {
  static const Json kNone = Json::array();
  const auto found = object.at("metadata").find("ownerReferences");
  return found == object.at("metadata").end() ? kNone : *found;
}

void forget_owners(Json& object, const std::vector<std::string>& uids) {
  Json kept = Json::array();
  for (const Json& owner : owners_of(object))
    if (std::find(uids.begin(), uids.end(), owner.at("uid")) == uids.end()) kept.push_back(owner);
  if (kept.empty())
    object["metadata"].erase("ownerReferences");
  else
    object["metadata"]["ownerReferences"] = std::move(kept);
}

struct Entry {
  const Kind* kind;
  ObjectKey key;
  ObjectPointer object;
};

}  // namespace

int ApiServer::collect_garbage() {
  std::lock_guard lock(mutex_);
  int resolved = 0;
  while (collect_one()) ++resolved;
  return resolved;
}

bool ApiServer::collect_one() {
  std::map<std::string, Entry> by_uid;
  std::multimap<std::string, Entry> dependents;  // by their owner's uid
  for (const auto& kind : kinds_) {
    for (const auto& [key, stored] : storage_.objects(*kind)) {
      by_uid[stored.object->at("metadata").at("uid")] = {kind.get(), key, stored.object};
      for (const Json& owner : owners_of(*stored.object))
        dependents.emplace(owner.at("uid"), Entry{kind.get(), key, stored.object});
    }
  }
  const auto edit = [&](const Entry& entry, const std::function<void(Json&)>& change) {
    Json after = *entry.object;
    change(after);
    update_object({*entry.kind, entry.key, entry.object.get(), std::move(after), ""});
  };

  for (const auto& [uid, entry] : by_uid) {
    const auto [first, last] = dependents.equal_range(uid);
    // 1. An owner that is to leave orphans.
    if (is_leaving(*entry.object) && has_finalizer(*entry.object, "orphan")) {
      if (first == last)
        edit(entry, [](Json& object) { erase_finalizer(object, "orphan"); });
      else
        edit(first->second, [&, gone = uid](Json& object) { forget_owners(object, {gone}); });
      return true;
    }
    // 2. An owner that waits for its dependents.
    if (is_leaving(*entry.object) && has_finalizer(*entry.object, "foregroundDeletion")) {
      const bool blocked = std::any_of(first, last, [](const auto& dependent) {
        return std::any_of(owners_of(*dependent.second.object).begin(), owners_of(*dependent.second.object).end(),
                           [](const Json& owner) { return owner.value("blockOwnerDeletion", false); });
      });
      for (auto dependent = first; dependent != last; ++dependent) {
        if (is_leaving(*dependent->second.object)) continue;
        remove_object(*dependent->second.kind, dependent->second.key, {.propagation = Propagation::kForeground});
        return true;
      }
      if (blocked) continue;
      edit(entry, [](Json& object) { erase_finalizer(object, "foregroundDeletion"); });
      return true;
    }
    // 3. An object whose owners are gone.
    std::vector<std::string> gone;
    for (const Json& owner : owners_of(*entry.object))
      if (!by_uid.contains(owner.at("uid"))) gone.push_back(owner.at("uid"));
    if (gone.empty() || is_leaving(*entry.object)) continue;
    if (gone.size() < owners_of(*entry.object).size())
      edit(entry, [&](Json& object) { forget_owners(object, gone); });
    else
      remove_object(*entry.kind, entry.key, {});
    return true;
  }
  return false;
}

}  // namespace sluice::kube::fake
