// The example of docs/designs/kube.md: a second controller, as small as one can be that is right. Every ConfigMap with
// the label example/copies=N gets N copies NAME-copy-0 ... in its namespace, with its data.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "src/kube/action.h"
#include "src/kube/client.h"
#include "src/kube/informer.h"
#include "src/kube/store.h"
#include "src/kube/work_queue.h"

namespace sluice::kube::example {

// The inputs of a decision, all from caches: nothing else may enter.
struct World {
  ObjectPointer original;             // nullptr: gone
  std::vector<ObjectPointer> copies;  // its own: by uid, not by name
};

// Pure: no clock, no I/O. The same world gives the same actions, and the actions, once seen, give none.
std::vector<Action> reconcile(const World& world);

// Thread safety: run() may be called from several threads. step() is run() for callers without threads.
class Controller {
 public:
  // REQUIRES: client, clock and informer outlive the controller; the informer watches ConfigMaps and has not started.
  Controller(const Client& client, const Clock& clock, Informer& config_maps);

  void run(std::stop_token stop);

  // One key, if one is ready.
  bool step(std::stop_token stop = {});

 private:
  void work(const ObjectKey& key, std::stop_token stop);
  Result<void> bring(const ObjectKey& key, std::stop_token stop);
  World see(const ObjectKey& key) const;

  const Client& client_;
  const Informer& config_maps_;
  WorkQueue<> queue_;
};

}  // namespace sluice::kube::example
