// Reconcile step of a TrainingJob's children: the trainer's Job, the workers' Service, the TLS Secret, the pool.
//
// Pure: no I/O, no clock. Level-driven: what to do follows from what is there, so that a crash between two writes, a
// repeated run or a second leader end in the same state. Children have deterministic names; a child is the job's own
// only if its controlling owner has the job's uid.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "operator/act/certificates.h"
#include "operator/config.h"
#include "src/kube/action.h"
#include "src/kube/store.h"

namespace sluice::act {

// What was seen. Null pointers: absent.
struct TrainingJobWorld {
  kube::ObjectPointer training_job;
  kube::ObjectPointer job;
  kube::ObjectPointer service;
  kube::ObjectPointer secret;
  kube::ObjectPointer pool;
};

// Random numbers are injected: makes the identity of the job named.
using IdentitySource = std::function<Result<TlsIdentity>(const std::string& job)>;

// The writes that bring the children to what the spec says; none when they are. In an order in which each may be the
// last one that happens: the Secret before the pods that mount it, the trainer last.
// Errors: InvalidArgument for a spec that cannot be carried out; AlreadyExists when a child's name belongs to somebody
// else (who must go first; nothing of theirs is touched).
Result<std::vector<kube::Action>> reconcile_children(const TrainingJobWorld& world, const control::Config& config,
                                                     const IdentitySource& make_identity);

}  // namespace sluice::act
