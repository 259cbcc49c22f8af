// The objects of one collection, as last seen.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "src/kube/resource.h"

namespace sluice::kube {

// One object in a store. Thread safety: immutable.
class StoredObject {
 public:
  explicit StoredObject(ObjectPointer object);

  const ObjectPointer& object() const { return object_; }

  // Whether both are the same state of the same object: uid and resourceVersion.
  bool is_same_state(const StoredObject& other) const { return !version_.empty() && state_ == other.state_; }
  const std::string& version() const { return version_; }

 private:
  std::string version_;
  std::string state_;  // uid and version
  ObjectPointer object_;
};
using StoredPointer = std::shared_ptr<const StoredObject>;

// Thread safety: all methods may be called from any thread. Objects are immutable and shared: a reader keeps its
// objects when the store gets others.
class Store {
 public:
  using Objects = std::map<ObjectKey, ObjectPointer>;

  // nullptr when there is none.
  ObjectPointer get(const ObjectKey& key) const;

  // A consistent picture of the whole collection, in key order.
  Objects snapshot() const;

  std::size_t size() const;

  // The resourceVersion up to which this shows the collection; empty before the first list.
  std::string version() const;

  // ---- The rest is for the informer, from one thread.

  StoredPointer find(const ObjectKey& key) const;
  void put(const ObjectKey& key, StoredPointer object);
  void erase(const ObjectKey& key);
  void set_version(std::string_view version);

  // A new collection comes together aside, unseen by readers. commit() makes it the collection and returns the
  // differences, removed ones first: keys with the object before and after. nullptr: there was or is none.
  void stage(const ObjectKey& key, StoredPointer object) { staged_.insert_or_assign(key, std::move(object)); }
  void unstage(const ObjectKey& key) { staged_.erase(key); }
  void discard_staged() { staged_.clear(); }
  void commit(
      const std::function<void(const ObjectKey&, const StoredPointer& before, const StoredPointer& after)>& tell);

 private:
  using Stored = std::map<ObjectKey, StoredPointer>;

  Stored staged_;  // the informer's thread's own
  mutable std::mutex mutex_;
  Stored objects_;
  std::string version_;
};

}  // namespace sluice::kube
