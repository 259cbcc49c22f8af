#include "operator/decide/orders.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/data_worker_pool.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"
#include "operator/api/training_job.h"

namespace sluice::decide {

using api::DataWorkerPool;
using nlohmann::json;

kube::Action scale_pool(const json& pool, int replicas) {
  kube::Action action{kube::Verb::kApply, kube::kDataWorkerPools, kube::key_of(pool),
                      api::planned_workers_patch(replicas), std::string(api::kSchedulerManager)};
  action.uid = api::Object(pool).uid();
  return action;
}

namespace {

bool set_by_another_manager(const DataWorkerPool& pool) {
  const std::string planned = pool.planned_workers();
  return !planned.empty() && planned != std::to_string(pool.replicas());
}

// A person who scales a pool in mode Auto, or an autoscaler that was forgotten, learns why it does not last.
void name_foreign_manager(ScaleOrder& order) {
  order.event.type = kube::EventType::kWarning;
  order.event.reason = "ReplicasOverwritten";
  order.event.note += " (it had been set to " + std::to_string(order.from) +
                      "; in mode Auto the scheduler decides: use dataWorkers.min and max, or mode Recommend)";
}

// Workers in the way of the feeders' growth. A resize that waits for such a worker would wait for ever.
int workers_on_hosts(const kube::Store::Objects& pods, const scheduler::JobPlan& plan) {
  int count = 0;
  for (const auto& [key, object] : pods) {
    const api::Pod pod(*object);
    if (key.namespace_ != plan.id.job_namespace || !pod.is_worker() || pod.job() != plan.id.name || pod.ended())
      continue;
    count += std::any_of(plan.local.begin(), plan.local.end(),
                         [&](const scheduler::LocalCpu& local) { return local.node == pod.node(); });
  }
  return count;
}

ScaleOrder order_of(const api::TrainingJob& training_job, const json& object, const scheduler::JobPlan& plan,
                    int workers) {
  const DataWorkerPool pool(object);
  ScaleOrder order;
  order.from = static_cast<int>(pool.replicas());
  order.to = workers;
  order.action = scale_pool(object, order.to);
  const bool more = order.to > order.from;
  order.event = {
      kube::kTrainingJobs, training_job.key(), training_job.uid(), kube::EventType::kNormal,
      more ? "ScaledUp" : "ScaledDown",
      // The recorder counts repetitions of the same event; another number is another event, with its own reason.
      "ScaleTo" + std::to_string(order.to),
      "data workers " + std::to_string(order.from) + " -> " + std::to_string(order.to) + ": " + plan.explanation};
  if (set_by_another_manager(pool)) name_foreign_manager(order);
  return order;
}

}  // namespace

std::vector<ScaleOrder> scale_orders(const observe::ClusterObjects& objects, const scheduler::Plan& plan,
                                     const std::set<scheduler::JobId>& held) {
  std::vector<ScaleOrder> orders;
  for (const scheduler::JobPlan& job : plan.jobs) {
    const auto training_job = objects.training_jobs.find({job.id.job_namespace, job.id.name});
    if (training_job == objects.training_jobs.end()) continue;
    const kube::ObjectPointer pool = observe::own_pool(objects, *training_job->second);
    if (!pool) continue;
    const auto replicas = static_cast<int>(DataWorkerPool(*pool).replicas());
    int workers = job.workers;
    if (workers < replicas && held.contains(job.id))
      workers = std::max(workers, replicas - workers_on_hosts(objects.pods, job));
    if (workers == replicas) continue;
    const auto view = api::view_training_job(*training_job->second);
    if (view.ok() && view->mode == api::Mode::kAuto && view->may_have_workers())
      orders.push_back(order_of(api::TrainingJob(*training_job->second), *pool, job, workers));
  }
  std::stable_sort(orders.begin(), orders.end(),
                   [](const ScaleOrder& a, const ScaleOrder& b) { return (a.to < a.from) > (b.to < b.from); });
  return orders;
}

}  // namespace sluice::decide
