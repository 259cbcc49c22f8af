// Reconcile step of a TrainingJob's children: the trainer's Job, the Services of workers and of several trainer pods,
// the TLS Secret, the pool, the workers' NetworkPolicy.
//
// Pure: no I/O, no clock. Level-driven: the actions follow from the present objects. So a crash between two writes, a
// repeated run or a second leader end in the same state. Children have deterministic names; a child is the job's own
// only if its controlling owner has the job's uid.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <vector>

#include "operator/act/certificates.h"
#include "operator/api/mounted_volumes.h"
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
  // The time since the Job was first seen to have failed, by our clock. The Job's own times are of another machine's:
  // a clock that is wrong by ten minutes would make the next Job wait so long, or not at all.
  std::chrono::duration<double> job_failed_for{0};
  // Why workers on other nodes cannot read the trainer's claims (act/data_claims.h); empty: they can.
  std::string unshared_data = {};
  // Of each trainer pod, by its claims of dynamic resource allocation (act/device_claims.h), where they are known.
  std::optional<std::int64_t> claimed_accelerators = {};
  std::vector<kube::ObjectPointer> limit_ranges = {};  // of its namespace
  // Where nodes have caches: what their certificates are checked by (empty: not known), and the claims of its pods.
  std::string cache_authorities = {};
  api::ClaimUids claims = {};
  // Ports that others hold on the network of nodes. Looked up for a trainer on that network whose Job is to be made.
  std::set<std::int64_t> held_host_ports = {};
  // As below, where it is known: then the Secret's certificates are not read before.
  std::chrono::system_clock::time_point secret_rotates_at = std::chrono::system_clock::time_point::min();
};

// From when on a job's Secret is due for a write.
std::chrono::system_clock::time_point secret_rotates_at(const kube::Json& secret);

// The pod of an earlier Job of this trainer that still runs, where there is no Job; empty: none does. A user has
// deleted the Job and not its pods. The next Job waits for their end: two trainers would write the same checkpoints.
std::string left_trainer_pod(const TrainingJobWorld& world);

// How long the failed Job of several trainer pods stays before the next one follows; none where nothing waits.
std::optional<std::chrono::milliseconds> restart_wait(const TrainingJobWorld& world);

// The writes that bring the children to the state of the spec; none when they have it. Each write may be the last one
// that happens, so their order counts: the Secret before the pods that mount it, then the trainer. The NetworkPolicy
// comes last: a job whose NetworkPolicy is refused runs nevertheless.
// Errors: InvalidArgument for a spec that cannot be carried out; AlreadyExists when another owner's object has a
// child's name. That object is not touched, and must go first.
Result<std::vector<kube::Action>> reconcile_children(const TrainingJobWorld& world, const control::Config& config,
                                                     const IdentitySource& make_identity);

}  // namespace sluice::act
