// Reconcile step of a TrainingJob's children: the trainer's Job, the Services of workers and of several trainer pods,
// the TLS Secret, the pool, the workers' NetworkPolicy.
//
// Pure: no I/O, no clock. Level-driven: the actions follow from the present objects. So a crash between two writes, a
// repeated run or a second leader end in the same state. Children have deterministic names; a child is the job's own
// only if its controlling owner has the job's uid.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "operator/act/certificates.h"
#include "operator/config.h"
#include "src/kube/action.h"
#include "src/kube/store.h"

namespace sluice::act {

// The objects as seen. Null pointers: absent.
struct TrainingJobWorld {
  kube::ObjectPointer training_job;
  kube::ObjectPointer job;
  kube::ObjectPointer service;
  kube::ObjectPointer secret;
  kube::ObjectPointer pool;
  kube::ObjectPointer trainers_service = nullptr;
  kube::ObjectPointer network_policy = nullptr;  // of the workers
  kube::ObjectPointer lost_secret = nullptr;     // as it was before it was deleted: what runs goes by its certificates
  std::vector<kube::ObjectPointer> trainer_pods = {};  // of any of the trainer's Jobs
  std::chrono::system_clock::time_point now = {};
  // How long it has been seen that the Job has failed. Not by the Job's own times: they are of another machine's clock,
  // and one that is wrong by ten minutes would make the next Job wait for them, or not at all.
  std::chrono::duration<double> job_failed_for{0};
  // Why workers on other nodes cannot read the trainer's claims (act/data_claims.h); empty: they can.
  std::string unshared_data = {};
  // As below, where it is known: then the Secret's certificates are not read before.
  std::chrono::system_clock::time_point secret_rotates_at = std::chrono::system_clock::time_point::min();
};

// From when on a job's Secret is due for a write.
std::chrono::system_clock::time_point secret_rotates_at(const kube::Json& secret);

// How long the failed Job of several trainer pods stays before the next one follows; none where nothing waits.
std::optional<std::chrono::milliseconds> restart_wait(const TrainingJobWorld& world);

// The writes that bring the children to what the spec says; none when they are. In an order in which each may be the
// last one that happens: the Secret before the pods that mount it, then the trainer. The
// NetworkPolicy comes last: where it is refused, the job runs nevertheless.
// Errors: InvalidArgument for a spec that cannot be carried out; AlreadyExists when a child's name belongs to another
// owner's object (which must go first; it is not touched).
Result<std::vector<kube::Action>> reconcile_children(const TrainingJobWorld& world, const control::Config& config,
                                                     const IdentitySource& make_identity);

}  // namespace sluice::act
