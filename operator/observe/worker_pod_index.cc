#include "operator/observe/worker_pod_index.h"

#include <nlohmann/json.hpp>

#include "operator/names.h"
#include "operator/observe/fields.h"

namespace sluice::observe {

kube::ObjectKey job_of_worker(const nlohmann::json& pod) {
  if (text_field(pod, "/metadata/labels/sluice.dev~1component") != control::kWorkerComponent) return {};
  return {text_field(pod, "/metadata/namespace"), text_field(pod, "/metadata/labels/sluice.dev~1job")};
}

kube::ObjectKey WorkerPodIndex::apply(const kube::ObjectKey& pod, const kube::ObjectPointer& before,
                                      const kube::ObjectPointer& after) {
  const kube::ObjectKey old_job = before ? job_of_worker(*before) : kube::ObjectKey{};
  const kube::ObjectKey job = after ? job_of_worker(*after) : old_job;
  std::lock_guard lock(mutex_);
  if (const auto found = by_job_.find(old_job); found != by_job_.end() && (!after || old_job != job)) {
    found->second.erase(pod.name);
    if (found->second.empty()) by_job_.erase(found);
  }
  if (after && !job.name.empty()) by_job_[job][pod.name] = after;
  return job;
}

std::vector<kube::ObjectPointer> WorkerPodIndex::workers_of(const kube::ObjectKey& job) const {
  std::lock_guard lock(mutex_);
  std::vector<kube::ObjectPointer> workers;
  if (const auto found = by_job_.find(job); found != by_job_.end())
    for (const auto& [name, pod] : found->second) workers.push_back(pod);
  return workers;
}

}  // namespace sluice::observe
