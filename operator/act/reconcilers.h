// The thin impure shells of the reconcile steps: gather the observed objects, call the pure step, perform its actions.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <vector>

#include "operator/act/controller.h"
#include "operator/act/data_claims.h"
#include "operator/act/data_worker_pool.h"
#include "operator/act/status.h"
#include "operator/act/training_job.h"
#include "operator/config.h"
#include "operator/decide/decision_board.h"
#include "src/base/clock.h"
#include "src/kube/action.h"
#include "src/kube/event_recorder.h"

namespace sluice::act {

// How a reconciler reaches the cluster. All functions may be called from any thread.
struct ClusterSeams {
  std::function<kube::ObjectPointer(const kube::Resource&, const kube::ObjectKey&)> seen;  // by the informers
  std::function<Result<kube::Json>(const kube::Resource&, const kube::ObjectKey&, std::stop_token)> read;  // live
  std::function<Result<void>(const kube::Action&, std::stop_token)> perform;
  std::function<void(kube::Event)> record;
  // The LimitRanges of a namespace.
  std::function<std::vector<kube::ObjectPointer>(const std::string& name_space)> limit_ranges = [](const std::string&) {
    return std::vector<kube::ObjectPointer>();
  };
  // Ports of nodes that pods hold, and trainers that are still to come; but for those of this job's trainer.
  std::function<std::set<std::int64_t>(const kube::ObjectKey& job)> host_ports = [](const kube::ObjectKey&) {
    return std::set<std::int64_t>();
  };
  // How long the API server will be busy with urgent writes: reports wait for them.
  std::function<std::chrono::milliseconds()> busy = [] { return std::chrono::milliseconds(0); };
};

// The pods of one kind that belong to a job, as the informers see them. May be called from any thread.
using PodsOf = std::function<std::vector<kube::ObjectPointer>(const kube::ObjectKey& job)>;

// Thread safety: reconcile() may be called from any thread, for different keys at once.
class TrainingJobReconciler {
 public:
  // REQUIRES: all references outlive the reconciler.
  TrainingJobReconciler(ClusterSeams seams, PodsOf trainers_of, const control::Config& config,
                        const decide::DecisionBoard& board, const Clock& clock);

  Again reconcile(const kube::ObjectKey& key, std::stop_token stop);

 private:
  std::chrono::duration<double> job_failed_for(const kube::ObjectKey& key, const kube::ObjectPointer& job);
  Result<void> look_at_secret(TrainingJobWorld& world, std::stop_token stop);
  Result<std::vector<kube::Action>> decide_children(TrainingJobWorld& world);
  Result<void> bring_children(TrainingJobWorld& world, std::stop_token stop);
  Result<void> after_existing(const kube::Json& training_job, const kube::Action& action, std::stop_token stop);
  Again report(const TrainingJobWorld& world, StatusStep step, std::stop_token stop);

  const ClusterSeams seams_;
  const PodsOf trainers_of_;
  const control::Config& config_;
  const decide::DecisionBoard& board_;
  const Clock& clock_;

  DataClaims claims_;

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

// Thread safety: reconcile() may be called from any thread, for different keys at once.
class PoolReconciler {
 public:
  // REQUIRES: all references outlive the reconciler.
  PoolReconciler(ClusterSeams seams, PodsOf workers_of, const decide::DecisionBoard& board, const Clock& clock);

  // How many pods of a pool are written at once, from as many threads; 1 until it is called. May be called from any
  // thread.
  void write_at_once(int pods) { pods_at_once_ = pods; }

  Again reconcile(const kube::ObjectKey& key, std::stop_token stop);

 private:
  PoolWorld world_of(const kube::ObjectKey& key, kube::ObjectPointer pool) const;
  // What failed may pass by itself; what was refused is in the step's memory.
  struct Brought {
    Result<void> outcome;
    bool refused = false;
  };
  Brought bring_pods(PoolStep& step, const PoolWorld& world, std::stop_token stop);
  Result<void> after_existing(const PoolWorld& world, const kube::Action& action, std::stop_token stop) const;
  void refuse(PoolStep& step, const PoolWorld& world, const Error& error, Brought& brought);
  std::vector<Result<void>> perform_all(std::span<const kube::Action> actions, const PoolWorld& world,
                                        std::stop_token stop) const;

  const ClusterSeams seams_;
  const PodsOf workers_of_;
  const decide::DecisionBoard& board_;
  const Clock& clock_;
  std::atomic<int> pods_at_once_ = 1;
  std::mutex mutex_;
  std::map<std::string, PoolMemory> memories_;        // by the pool's uid
  std::map<kube::ObjectKey, std::string> last_uids_;  // to forget pools that are gone
};

}  // namespace sluice::act
