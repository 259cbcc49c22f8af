// Pods by job, so that a job's step need not search the pods of the whole cluster.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/kube/informer.h"

namespace sluice::observe {

// Thread safety: all methods may be called from any thread.
class PodIndex {
 public:
  // The job (namespace/name) that a pod belongs to; an empty name: none.
  using JobOf = kube::ObjectKey(const kube::Json& pod);

  explicit PodIndex(JobOf* job_of) : job_of_(job_of) {}

  // To be called for every change of any pod. Returns the job to which it belongs or belonged.
  kube::ObjectKey apply(const kube::ObjectKey& pod, const kube::ObjectPointer& before,
                        const kube::ObjectPointer& after);

  std::vector<kube::ObjectPointer> pods_of(const kube::ObjectKey& job) const;

 private:
  JobOf* const job_of_;
  mutable std::mutex mutex_;
  std::map<kube::ObjectKey, std::map<std::string, kube::ObjectPointer>> by_job_;  // job -> pod name -> pod
};

// The job whose worker the pod is, or whose worker's name it holds. The pool that controls the pod says so first, then
// its labels, then its name. Empty if it is no worker.
kube::ObjectKey job_of_worker(const kube::Json& pod);

// The job whose trainer the pod is, by its labels.
kube::ObjectKey job_of_trainer(const kube::Json& pod);

}  // namespace sluice::observe
