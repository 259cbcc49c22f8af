#include "operator/observe/pod_index.h"

#include "operator/api/names.h"
#include "operator/api/pod.h"

namespace sluice::observe {

kube::ObjectKey job_of_worker(const kube::Json& pod) {
  const api::Pod worker(pod);
  if (worker.is_trainer()) return {};
  // A pool has its job's name.
  if (const auto owner = worker.controller(); owner.kind == api::kPoolKind) return {worker.name_space(), owner.name};
  const std::string job = worker.is_worker() ? worker.job() : api::job_of_worker_pod_name(worker.name());
  return job.empty() ? kube::ObjectKey() : kube::ObjectKey{worker.name_space(), job};
}

kube::ObjectKey job_of_trainer(const kube::Json& pod) {
  const api::Pod trainer(pod);
  return trainer.is_trainer() ? kube::ObjectKey{trainer.name_space(), trainer.job()} : kube::ObjectKey{};
}

kube::ObjectKey PodIndex::apply(const kube::ObjectKey& pod, const kube::ObjectPointer& before,
                                const kube::ObjectPointer& after) {
  const kube::ObjectKey old_job = before ? job_of_(*before) : kube::ObjectKey{};
  const kube::ObjectKey job = after ? job_of_(*after) : old_job;
  std::lock_guard lock(mutex_);
  if (const auto found = by_job_.find(old_job); found != by_job_.end() && (!after || old_job != job)) {
    found->second.erase(pod.name);
    if (found->second.empty()) by_job_.erase(found);
  }
  if (after && !job.name.empty()) by_job_[job][pod.name] = after;
  return job;
}

std::vector<kube::ObjectPointer> PodIndex::pods_of(const kube::ObjectKey& job) const {
  std::lock_guard lock(mutex_);
  std::vector<kube::ObjectPointer> pods;
  if (const auto found = by_job_.find(job); found != by_job_.end())
    for (const auto& [name, pod] : found->second) pods.push_back(pod);
  return pods;
}

}  // namespace sluice::observe
