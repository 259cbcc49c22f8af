// An in-memory API server for step tests: as much of its rules as the steps rely on.
//
//   create   AlreadyExists for a taken name; uid and creationTimestamp are given
//   apply    creates or merges; a wrong uid or version is Conflict (versions are as put and never change);
//            lists are replaced (ours are atomic or have one element)
//   status   only .status changes, and a spec write never changes it
//   secrets  stringData goes into data, in base64
//   delete   with another uid: nothing happens; pods stay, marked, until finish_deletions()
#pragma once

#include <openssl/evp.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "src/kube/action.h"
#include "src/kube/store.h"

namespace sluice::control::testing {

class FakeCluster {
 public:
  using Json = nlohmann::json;

  void put(const kube::Resource& resource, Json object) {
    const kube::ObjectKey key = kube::key_of(object);
    objects_[{std::string(resource.plural), key}] = std::move(object);
  }

  kube::ObjectPointer get(const kube::Resource& resource, const std::string& name) const {
    const auto found = objects_.find({std::string(resource.plural), {"default", name}});
    return found == objects_.end() ? nullptr : std::make_shared<const Json>(found->second);
  }

  kube::Store::Objects all(const kube::Resource& resource) const {
    kube::Store::Objects result;
    for (const auto& [id, object] : objects_)
      if (id.first == resource.plural) result[id.second] = std::make_shared<const Json>(object);
    return result;
  }

  Json& at(const kube::Resource& resource, const std::string& name) {
    return objects_.at({std::string(resource.plural), {"default", name}});
  }

  Result<void> perform(const kube::Action& action) {
    const Id id{std::string(action.resource.plural), action.key};
    const auto found = objects_.find(id);
    const bool exists = found != objects_.end();
    const bool other = exists && !action.uid.empty() && found->second["metadata"]["uid"] != action.uid;
    switch (action.verb) {
      case kube::Verb::kCreate:
        if (exists) return Error(ErrorCode::kAlreadyExists, action.to_string());
        return create(id, action.body);
      case kube::Verb::kDelete:
        if (!exists || other) return {};
        return remove(id);
      case kube::Verb::kApply:
        if (!exists && action.uid.empty()) return create(id, action.body);
        break;
      case kube::Verb::kApplyStatus:
      case kube::Verb::kMergePatch: break;
    }
    if (!exists) return not_found(action.to_string());
    const std::string version = found->second["metadata"].value("resourceVersion", "");
    if (other || (!action.version.empty() && action.version != version))
      return Error(ErrorCode::kConflict, action.to_string());
    if (action.verb == kube::Verb::kApplyStatus)
      found->second["status"] = action.body.at("status");
    else
      found->second.merge_patch(action.body);
    encode_texts(found->second);
    return {};
  }

  // A user deletes it; it is gone at once.
  void remove(const kube::Resource& resource, const std::string& name) {
    objects_.erase({std::string(resource.plural), {"default", name}});
  }

  // The kubelet reports that draining pods have ended.
  void finish_deletions() {
    std::erase_if(objects_, [](const auto& entry) { return entry.second["metadata"].contains("deletionTimestamp"); });
  }

  // Everything that tells two histories with the same outcome apart is removed.
  Json comparable() const {
    Json result = Json::object();
    for (const auto& [id, object] : objects_) {
      Json copy = object;
      for (const char* varying : {"uid", "creationTimestamp"}) copy["metadata"].erase(varying);
      if (copy["metadata"].contains("ownerReferences")) copy["metadata"]["ownerReferences"][0].erase("uid");
      if (id.first == kube::kSecrets.plural) copy.erase("data");
      copy.erase("status");
      result[id.first + "/" + id.second.to_string()] = std::move(copy);
    }
    return result;
  }

 private:
  using Id = std::pair<std::string, kube::ObjectKey>;

  Result<void> create(const Id& id, Json object) {
    object["metadata"]["uid"] = "uid-" + std::to_string(++last_uid_);
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:" + std::to_string(10 + last_uid_ % 50) + "Z";
    object["metadata"]["name"] = id.second.name;
    object["metadata"]["namespace"] = id.second.namespace_;
    encode_texts(object);
    objects_[id] = std::move(object);
    return {};
  }

  static void encode_texts(Json& secret) {
    if (!secret.contains("stringData")) return;
    for (const auto& [name, entry] : secret["stringData"].items()) {
      const std::string text = entry.get<std::string>();
      std::string encoded((text.size() + 2) / 3 * 4 + 1, '\0');
      encoded.resize(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size())));
      secret["data"][name] = encoded;
    }
    secret.erase("stringData");
  }

  Result<void> remove(const Id& id) {
    if (id.first != kube::kPods.plural)
      objects_.erase(id);
    else
      objects_[id]["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z";
    return {};
  }

  std::map<Id, Json> objects_;
  int last_uid_ = 0;
};

}  // namespace sluice::control::testing
