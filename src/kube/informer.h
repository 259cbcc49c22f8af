// A local, always nearly current copy of a collection, and a call for every change of it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/kube/backoff.h"
#include "src/kube/client.h"
#include "src/kube/reflector.h"
#include "src/kube/store.h"

namespace sluice::kube {

// A change: `before` is null for a new object, `after` for one that is gone. Objects found unchanged by a new list
// (same uid and resourceVersion) are no change. The last state of an object that vanished while we were not looking
// may be older than its real last state.
using ChangeHandler =
    std::function<void(const ObjectKey& key, const ObjectPointer& before, const ObjectPointer& after)>;

// Thread safety: all methods but add_handler and the destructor may be called from any thread.
// Invariant: a handler is called after the store holds the change, in the order of the server's events.
class Informer {
 public:
  // REQUIRES: client and clock outlive the informer.
  Informer(const Client& client, const Clock& clock, UniformRandom random, Resource resource,
           ReflectorOptions options = {});

  // Stops and joins.
  ~Informer();

  // Handlers are called on the informer's thread and must return at once: they put a key into a WorkQueue.
  // REQUIRES: not started.
  void add_handler(ChangeHandler handler);

  // REQUIRES: called once. Starts the thread that lists and watches until the informer is destroyed.
  void start();

  const Store& store() const { return store_; }

  // Whether the first list is in the store and its handlers have been called. Before that an absent object means
  // nothing.
  bool has_synced() const;

  // Blocks until has_synced() (true) or `stop` (false).
  bool wait_for_sync(std::stop_token stop) const;

 private:
  class Target;

  Store store_;
  std::vector<ChangeHandler> handlers_;
  std::unique_ptr<Target> target_;
  std::unique_ptr<Reflector> reflector_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any synced_changed_;
  bool synced_ = false;
  std::jthread thread_;
};

}  // namespace sluice::kube
