// A local, always nearly current copy of a collection, and a call for every change of it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/kube/backoff.h"
#include "src/kube/client.h"
#include "src/kube/reflector.h"
#include "src/kube/store.h"
#include "src/kube/work_queue.h"

namespace sluice::kube {

// Objects found unchanged by a new list (same uid and resourceVersion) are no change. The last state of an object that
// vanished while we were not looking may be older than its real last state.
struct Change {
  ObjectKey key;
  ObjectPointer before;     // nullptr: new
  ObjectPointer after;      // nullptr: gone
  bool is_initial = false;  // of the first list, or of one after look_again(): not news

  // A restart must not make fresh changes wait until everything has been looked at.
  Priority priority() const { return is_initial ? Priority::kLow : Priority::kNormal; }
};
using ChangeHandler = std::function<void(const Change&)>;

// Thread safety: all methods but add_handler, reflector and the destructor may be called from any thread.
// Invariants: a handler is called after the store holds the change, in the order of the server's events. An object is
// never replaced by an older state of itself, and a deletion older than what we hold deletes nothing.
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

  // Lists again; has_synced() is false until then. A watch may lag, and what another process did meanwhile is missing.
  // A caller without threads ends its watch before.
  void look_again();

  // For callers without threads: drives the informer step by step. REQUIRES: not started.
  Reflector& reflector() { return *reflector_; }

  const Resource& resource() const { return reflector_->resource(); }

  const Store& store() const { return store_; }

  // Whether a list that began after look_again(), or the first one, is in the store and its handlers have been called.
  // Before that an absent object means nothing.
  bool has_synced() const;

  // Since the API server last told something of the collection, be it only a bookmark (one a minute); before the first
  // list since the construction.
  Clock::Duration silent_for() const;

  // Blocks until has_synced() (true) or `stop` (false).
  bool wait_for_sync(std::stop_token stop) const;

 private:
  class Target;

  void run(std::stop_token stop);
  std::stop_source begin_round();

  const Client& client_;
  const Clock& clock_;
  Store store_;
  std::vector<ChangeHandler> handlers_;
  std::unique_ptr<Target> target_;
  std::unique_ptr<Reflector> reflector_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any synced_changed_;
  // Lists, by number: the one that is needed, the one that is being read, and the newest in the store.
  int wanted_list_ = 1;
  int current_list_ = 1;
  int stored_list_ = 0;
  std::stop_source round_;  // ends the requests of current_list_
  Clock::TimePoint heard_at_;
  std::jthread thread_;
};

}  // namespace sluice::kube
