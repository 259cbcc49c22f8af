// A cluster with many jobs at rest, as an API server tells of it: with managedFields, statuses of real kubelets, and
// nodes that name the images they hold. What Sluice makes is made here by its own reconcile steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/kube/resource.h"

namespace sluice::bench {

struct ClusterSize {
  int jobs = 1000;
  int workers_per_job = 10;  // at most ten: names keep their length
  int nodes = 1250;
  int images_per_node = 50;    // as many as a kubelet reports by default
  int strangers_per_node = 5;  // pods of DaemonSets
};

// Thread safety: immutable.
class StoredCluster {
 public:
  // Errors: InvalidArgument where Sluice refuses the job.
  static Result<StoredCluster> make(const ClusterSize& size);

  int count_of(const kube::Resource& resource) const;

  // JSON on one line. REQUIRES: index < count_of(resource); version has ten digits.
  std::string text_of(const kube::Resource& resource, int index, std::int64_t version) const;

  // One worker that is not among the others any more, or not yet ready. REQUIRES: as above.
  enum class Stage { kPending, kBound, kReady };
  std::string worker_text(int job, int worker, std::int64_t version, Stage stage) const;

  // The Secret of a job, by its name.
  std::string secret_text(std::string_view name) const;

  const ClusterSize& size() const { return size_; }

 private:
  StoredCluster() = default;

  ClusterSize size_;
  // All of job 0, worker 0, node 0.
  std::string training_job_, pool_, job_, service_, network_policy_, secret_;
  std::string trainer_, stranger_, node_;
  std::string pending_worker_, bound_worker_, ready_worker_;
};

}  // namespace sluice::bench
