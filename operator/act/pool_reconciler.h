// The impure shell of a DataWorkerPool's reconcile step: sees its pods, calls the pure step, performs its actions.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/act/cluster_seams.h"
#include "operator/act/controller.h"
#include "operator/act/data_worker_pool.h"
#include "operator/decide/decision_board.h"
#include "src/base/clock.h"

namespace sluice::act {

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
  // A failure in `outcome` may pass by itself. A refusal is in the step's memory.
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
