// The impure shell of a TrainingJob's reconcile steps: sees its objects, calls the pure steps, performs their actions.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/act/cluster_seams.h"
#include "operator/act/controller.h"
#include "operator/act/data_claims.h"
#include "operator/act/device_claims.h"
#include "operator/act/node_cache_identity.h"
#include "operator/act/overwritten_children.h"
#include "operator/act/refused_children.h"
#include "operator/act/status.h"
#include "operator/act/training_job.h"
#include "operator/config.h"
#include "operator/decide/decision_board.h"
#include "src/base/clock.h"

namespace sluice::act {

// Thread safety: reconcile() may be called from any thread, for different keys at once.
class TrainingJobReconciler {
 public:
  // REQUIRES: all references outlive the reconciler.
  TrainingJobReconciler(ClusterSeams seams, PodsOf trainers_of, const control::Config& config,
                        const decide::DecisionBoard& board, const Clock& clock);

  Again reconcile(const kube::ObjectKey& key, std::stop_token stop);

  // Before there is a job: the pods of the nodes' caches wait for their certificate.
  void make_cache_identity(std::stop_token stop) { static_cast<void>(cache_identity_.authorities(std::move(stop))); }

 private:
  std::chrono::duration<double> job_failed_for(const kube::ObjectKey& key, const kube::ObjectPointer& job);
  Result<void> look_at_secret(TrainingJobWorld& world, std::stop_token stop);
  Result<std::vector<kube::Action>> decide_children(TrainingJobWorld& world);
  // `later`: when to look again at a child that has to wait.
  Result<void> bring_children(TrainingJobWorld& world, std::optional<std::chrono::milliseconds>& later,
                              std::stop_token stop);
  Result<void> apply(const kube::Json& training_job, const kube::Action& action, std::stop_token stop);
  Result<void> after_existing(const kube::Json& training_job, const kube::Action& action, std::stop_token stop);
  Again report(const TrainingJobWorld& world, StatusStep step, std::stop_token stop);

  const ClusterSeams seams_;
  const PodsOf trainers_of_;
  const control::Config& config_;
  const decide::DecisionBoard& board_;
  const Clock& clock_;

  DataClaims claims_;
  DeviceClaims devices_;
  NodeCacheIdentity cache_identity_;
  RefusedChildren refused_;
  OverwrittenChildren overwritten_;

  // Secrets are read by name, never listed or watched: the operator's rights need not reach further. A Secret that was
  // read is believed for a while, and kept: one that is deleted is made again as it was.
  struct KnownSecret {
    std::string job_uid;
    kube::ObjectPointer secret;
    Clock::TimePoint read_at;
    std::chrono::system_clock::time_point rotates_at;
  };
  struct SeenFailure {
    std::string job_uid;  // of the trainer's Job
    Clock::TimePoint since;
  };
  std::mutex mutex_;
  std::map<kube::ObjectKey, KnownSecret> secrets_;            // by the TrainingJob
  std::map<kube::ObjectKey, SeenFailure> failures_;           // the same
  std::map<std::string, Clock::TimePoint> unreported_since_;  // by its uid, where something is held back

  // Ports of nodes that were given to trainers whose Jobs have not been seen yet. By the TrainingJob.
  std::mutex ports_mutex_;
  std::map<kube::ObjectKey, std::set<std::int64_t>> given_ports_;
};

}  // namespace sluice::act
