// From the informers' objects and the metrics to the scheduler's immutable snapshot.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/observe/node_groups.h"
#include "operator/observe/pending_pods.h"
#include "operator/observe/pod_view.h"
#include "operator/observe/prometheus_source.h"
#include "operator/observe/sized_workers.h"
#include "operator/observe/spread_domains.h"
#include "operator/observe/trainer_hosts.h"
#include "operator/observe/worker_times.h"
#include "scheduler/model/snapshot.h"
#include "src/kube/store.h"

namespace sluice::observe {

// All objects as seen, at about one moment.
struct ClusterObjects {
  kube::Store::Objects training_jobs;
  kube::Store::Objects pools;
  kube::Store::Objects jobs;  // batch/v1, the trainers
  kube::Store::Objects pods;  // of the whole cluster
  kube::Store::Objects nodes;
  kube::Store::Objects resource_quotas;
  kube::Store::Objects limit_ranges;
};

// The guess for a job before it is measured: one like it ran before.
struct Guess {
  scheduler::EstimatorMemory memory;
  int workers = 0;
  std::optional<api::WorkerSize> size;  // of the workers, where Sluice had chosen it
};

// By the TrainingJob's uid: a namesake made later starts from nothing.
using EstimatorMemories = std::map<std::string, scheduler::EstimatorMemory>;

// Facts that the objects do not hold.
struct Circumstances {
  int cluster_cpu_percent = 100;
  int free_cpu_percent = 0;
  bool resizes_feeders = false;         // the server can, and the configuration allows it
  std::set<std::string> fixed_feeders;  // uids of trainer pods whose feeder could not be resized lately
  control::NodeFacts nodes;
  control::Budgets budgets;
  std::map<std::string, control::NamespaceCaps> namespace_caps;
  std::map<std::string, control::SharedStorage> storages;
  // By api::TrainingJobView::likeness; empty: there are no guesses.
  std::function<std::optional<Guess>(const std::string& likeness)> guess;
};

// Thread safety: none; one owner. The snapshot depends on the arguments, on how long pods have waited (pending_pods.h),
// and on when workers were seen first (worker_times.h). Else only values read out of unchanged objects are remembered.
class SnapshotBuilder {
 public:
  SnapshotBuilder();

  // Jobs that have finished, are being deleted or cannot be read are not part of it.
  scheduler::ClusterSnapshot build(const ClusterObjects& objects, const Observations& observations,
                                   const EstimatorMemories& memories, const Circumstances& circumstances,
                                   double now_seconds);

  // Of the last snapshot's running jobs whose feeders' CPU the plan sets.
  const FeederPods& planned_feeders() const { return planned_feeders_; }

  // Of the last snapshot's jobs whose workers' size is left to Sluice.
  const std::map<scheduler::JobId, SizedWorkers>& sized_workers() const { return sized_workers_; }

  // Of the last snapshot's jobs: api::TrainingJobView::likeness.
  const std::map<scheduler::JobId, std::string>& likenesses() const { return likenesses_; }

  // Of the last snapshot's jobs that a cap of their namespace binds: in words.
  const std::map<scheduler::JobId, std::string>& capped() const { return capped_; }

  // Whether a part of the last snapshot's nodes is left free, by Circumstances::free_cpu_percent.
  bool keeps_cpu_free() const { return keeps_cpu_free_; }

 private:
  // The workers of one job, as far as they are seen before the nodes are.
  struct SeenWorkers {
    const api::TrainingJobView* view = nullptr;
    std::optional<api::WorkerSize> chosen = {};  // by the pool
    api::ContainerResources in_force = {};       // of the pool's next worker
    std::int64_t wanted = 0;
    std::string priority_class = {};        // of its workers; empty: none
    std::vector<const PodView*> pods = {};  // that have not finished
  };

  // What the job's namespace allows at most; notes what that takes away.
  void cap(const Circumstances& circumstances, scheduler::Job& job);
  static void take_workers(const SeenWorkers& seen, double now_seconds, scheduler::Job& job);

  // The size of a worker of each job, and what bounds the workers of each namespace. `workers`: as snapshot.jobs.
  void bound_workers(const std::vector<SeenWorkers>& workers, const ClusterObjects& objects,
                     const Observations& observations, const Circumstances& circumstances,
                     scheduler::ClusterSnapshot& snapshot);

  // Sets the job's worker_millicores, and a number of workers that was guessed.
  api::ContainerResources size_workers(const SeenWorkers& seen, const api::ContainerBounds& allowed,
                                       const scheduler::ClusterSnapshot& snapshot, const Observations& observations,
                                       const Circumstances& circumstances, scheduler::Job& job);

  const PodViews::Entries& view_pods(const kube::Store::Objects& objects, double now_seconds);

  PodViews pods_{view_pod};
  WorkerTimes worker_times_;
  Views<Result<api::TrainingJobView>> training_jobs_{api::view_training_job};
  // Of a pool: where its workers may go.
  struct WorkerRules {
    api::NodeRules nodes;
    std::vector<api::SpreadTerm> spread;
  };

  Views<WorkerRules> worker_rules_;  // of the pools
  NodeGroups node_groups_;
  PendingPods pending_pods_;
  FeederPods planned_feeders_;
  std::map<scheduler::JobId, SizedWorkers> sized_workers_;
  std::map<scheduler::JobId, std::string> likenesses_;
  std::map<scheduler::JobId, std::string> capped_;
  bool keeps_cpu_free_ = false;
};

// The pool that belongs to the TrainingJob itself, not merely to its name; nullptr if there is none.
kube::ObjectPointer own_pool(const ClusterObjects& objects, const nlohmann::json& training_job);

}  // namespace sluice::observe
