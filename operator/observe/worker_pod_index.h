// Worker pods by job, so that a pool's step need not search the pods of the whole cluster.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/kube/informer.h"

namespace sluice::observe {

// Thread safety: all methods may be called from any thread.
class WorkerPodIndex {
 public:
  // To be called for every change of any pod. Returns the job (namespace/name) whose worker it is or was; an empty name
  // for other pods.
  kube::ObjectKey apply(const kube::ObjectKey& pod, const kube::ObjectPointer& before,
                        const kube::ObjectPointer& after);

  std::vector<kube::ObjectPointer> workers_of(const kube::ObjectKey& job) const;

 private:
  mutable std::mutex mutex_;
  std::map<kube::ObjectKey, std::map<std::string, kube::ObjectPointer>> by_job_;  // job -> pod name -> pod
};

// The job whose worker the pod is, or whose worker's name it holds. The pool that controls the pod says so first, then
// its labels, then its name. Empty if it is no worker.
kube::ObjectKey job_of_worker(const kube::Json& pod);

}  // namespace sluice::observe
