// The objects of one collection, as last seen.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/kube/resource.h"

namespace sluice::kube {

// Thread safety: all methods may be called from any thread. Objects are immutable and shared: a reader keeps what it
// got, whatever happens to the store.
class Store {
 public:
  using Objects = std::map<ObjectKey, ObjectPointer>;

  // nullptr when there is none.
  ObjectPointer get(const ObjectKey& key) const {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : found->second;
  }

  // A consistent picture of the whole collection, in key order.
  Objects snapshot() const {
    std::lock_guard lock(mutex_);
    return objects_;
  }

  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return objects_.size();
  }

  // The resourceVersion up to which this shows the collection; empty before the first list.
  std::string version() const {
    std::lock_guard lock(mutex_);
    return version_;
  }

  // The rest is for the informer. Each returns the state before.
  ObjectPointer put(const ObjectKey& key, ObjectPointer object) {
    std::lock_guard lock(mutex_);
    return std::exchange(objects_[key], std::move(object));
  }
  ObjectPointer erase(const ObjectKey& key) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end()) return nullptr;
    ObjectPointer before = std::move(found->second);
    objects_.erase(found);
    return before;
  }
  Objects replace(Objects objects) {
    std::lock_guard lock(mutex_);
    return std::exchange(objects_, std::move(objects));
  }
  void set_version(std::string_view version) {
    std::lock_guard lock(mutex_);
    version_ = version;
  }

 private:
  mutable std::mutex mutex_;
  Objects objects_;
  std::string version_;
};

}  // namespace sluice::kube
