// One of several replicas leads, by a Lease (client-go's tools/leaderelection: 15 s, 10 s, 2 s).
//
// Only the *local* time at which the Lease was seen to change counts, never the times written in it: clocks differ.
// This does not fence: for a moment two replicas may believe that they lead. So every write must be safe with two
// leaders (server-side apply, preconditions, deterministic names).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/kube/backoff.h"
#include "src/kube/client.h"
#include "src/kube/resource.h"

namespace sluice::kube {

// REQUIRES: lease_duration > renew_deadline > 1.2 * retry_period; whole seconds.
struct LeaderElectionOptions {
  ObjectKey lease;
  std::string identity;  // unique per process: the pod's name
  std::chrono::seconds lease_duration{15};
  std::chrono::seconds renew_deadline{10};
  std::chrono::seconds retry_period{2};
};

// Thread safety: run() is called from one thread; is_leader() may be called from any.
class LeaderElector {
 public:
  struct Callbacks {
    std::function<void()> on_acquired;  // must return promptly (start threads): the lease is renewed after it
    std::function<void()> on_lost;      // another replica may lead now: stop writing before returning
  };

  // REQUIRES: client and clock outlive the elector.
  LeaderElector(const Client& client, const Clock& clock, UniformRandom random, LeaderElectionOptions options,
                Callbacks callbacks);
  ~LeaderElector();

  // Waits for the lease, holds it, and returns
  //   ok           after `stop`; a held lease is given up at once, so that a successor need not wait. on_lost is not
  //                called: the caller stops the writers before it requests `stop`.
  //   Unavailable  after the lease was lost (on_lost has been called). The process should exit.
  Result<void> run(std::stop_token stop);

  // One round of run(), for callers without threads. Returns the pause before the next one, or Unavailable when the
  // lease was lost (on_lost has been called; it is the last round). REQUIRES: not called while run() runs.
  Result<std::chrono::milliseconds> step(std::stop_token stop = {});

  // Gives the lease up, if we hold it. No step() may follow.
  void release();

  // False from the moment on at which another replica may have taken the lease, also before step() notices. So a
  // process that was stopped for a while knows it at once.
  bool is_leader() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sluice::kube
