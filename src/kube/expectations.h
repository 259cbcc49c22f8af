// Writes of ours that the informers do not show yet: who reconciles before they do decides on a state that is not there
// any more, and does things twice (KEP-5647). What was written carries a resourceVersion; an informer that has reached
// it shows the write, or what became of it since.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/kube/resource.h"
#include "src/kube/store.h"

namespace sluice::kube {

// Thread safety: all methods may be called from any thread.
// Invariant: at most max_writes writes are remembered per owner; the oldest are forgotten first.
class Expectations {
 public:
  // A write that is not seen after `patience` is no longer waited for: the watch may not select the object at all.
  // REQUIRES: `clock` outlives the expectations.
  explicit Expectations(const Clock& clock, std::chrono::milliseconds patience = std::chrono::minutes(5),
                        std::size_t max_writes = 10000)
      : clock_(clock), patience_(patience), max_writes_(max_writes) {}

  // Work on `owner` wrote an object of the collection that `store` shows; `stored` is the server's answer.
  // REQUIRES: `store` lives until the owner is forgotten, or this object dies.
  void written(const ObjectKey& owner, const Store& store, const Json& stored);

  // Work on `owner` deleted the object: seen when it is gone, is another incarnation, or is being deleted.
  void removed(const ObjectKey& owner, const Store& store, const ObjectKey& key, const std::string& uid);

  // Whether everything that work on `owner` wrote can be seen. While this is false, work on it is a waste: the change
  // that makes it true adds the owner to its queue again.
  bool satisfied(const ObjectKey& owner);

  // The owner is gone.
  void forget(const ObjectKey& owner);

 private:
  struct Write {
    const Store* store;
    ObjectKey key;
    std::string uid;
    std::string version;  // empty: a deletion
    Clock::TimePoint give_up_at;
  };

  void remember(const ObjectKey& owner, Write write);
  static bool is_seen(const Write& write);

  const Clock& clock_;
  const std::chrono::milliseconds patience_;
  const std::size_t max_writes_;
  std::mutex mutex_;
  std::map<ObjectKey, std::vector<Write>> writes_;
};

}  // namespace sluice::kube
