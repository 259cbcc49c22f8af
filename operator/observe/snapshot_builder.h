// From the informers' objects and the metrics to the scheduler's immutable snapshot.
#pragma once

#include <map>

#include "operator/observe/pod_view.h"
#include "operator/observe/prometheus_source.h"
#include "operator/observe/training_job_view.h"
#include "scheduler/snapshot.h"
#include "src/kube/store.h"

namespace sluice::observe {

// Everything that was seen, at about one moment.
struct ClusterObjects {
  kube::Store::Objects training_jobs;
  kube::Store::Objects pools;
  kube::Store::Objects jobs;  // batch/v1, the trainers
  kube::Store::Objects pods;  // of the whole cluster
  kube::Store::Objects nodes;
};

// By the TrainingJob's uid: a namesake made later starts from nothing.
using EstimatorMemories = std::map<std::string, scheduler::EstimatorMemory>;

// Thread safety: none; one owner. The snapshot depends on the arguments alone: what is remembered is only what was read
// out of objects that have not changed since.
class SnapshotBuilder {
 public:
  // Jobs that have finished, are being deleted or cannot be read are not part of it.
  scheduler::ClusterSnapshot build(const ClusterObjects& objects, const Observations& observations,
                                   const EstimatorMemories& memories, int cluster_cpu_percent, double now_seconds);

 private:
  PodViews pods_{view_pod};
  Views<Result<TrainingJobView>> training_jobs_{view_training_job};
};

// The pool that belongs to the TrainingJob itself, not merely to its name; nullptr if there is none.
kube::ObjectPointer own_pool(const ClusterObjects& objects, const nlohmann::json& training_job);

}  // namespace sluice::observe
