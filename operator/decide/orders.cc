#include "operator/decide/orders.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/names.h"
#include "operator/observe/fields.h"
#include "operator/observe/training_job_view.h"

namespace sluice::decide {

using nlohmann::json;
using observe::text_field;

kube::Action scale_pool(const json& pool, int replicas) {
  kube::Action action{
      kube::Verb::kApply,
      kube::kDataWorkerPools,
      kube::key_of(pool),
      {{"metadata", {{"annotations", {{control::kPlannedWorkersAnnotation, std::to_string(replicas)}}}}},
       {"spec", {{"replicas", replicas}}}},
      std::string(control::kSchedulerManager)};
  action.uid = text_field(pool, "/metadata/uid");
  return action;
}

namespace {

bool set_by_somebody_else(const json& pool, int replicas) {
  const json& annotations = observe::field(pool, "/metadata/annotations");
  const auto planned = annotations.find(control::kPlannedWorkersAnnotation);
  return planned != annotations.end() && *planned != std::to_string(replicas);
}

// A person who scales a pool in mode Auto, or an autoscaler that was forgotten, learns why it does not last.
void say_who_decides(ScaleOrder& order) {
  order.event.type = kube::EventType::kWarning;
  order.event.reason = "ReplicasOverwritten";
  order.event.note += " (somebody else had set " + std::to_string(order.from) +
                      "; in mode Auto the scheduler decides: use dataWorkers.min and max, or mode Recommend)";
}

ScaleOrder order_of(const json& training_job, const json& pool, const scheduler::JobPlan& plan) {
  ScaleOrder order;
  order.from = static_cast<int>(observe::integer_field(pool, "/spec/replicas"));
  order.to = plan.workers;
  order.action = scale_pool(pool, order.to);
  const bool more = order.to > order.from;
  order.event = {
      kube::kTrainingJobs, kube::key_of(training_job), text_field(training_job, "/metadata/uid"),
      kube::EventType::kNormal, more ? "ScaledUp" : "ScaledDown",
      // The recorder counts repetitions of the same event; another number is another event, with its own reason.
      "ScaleTo" + std::to_string(order.to),
      "data workers " + std::to_string(order.from) + " -> " + std::to_string(order.to) + ": " + plan.explanation};
  if (set_by_somebody_else(pool, order.from)) say_who_decides(order);
  return order;
}

}  // namespace

std::vector<ScaleOrder> scale_orders(const observe::ClusterObjects& objects, const scheduler::Plan& plan) {
  std::vector<ScaleOrder> orders;
  for (const scheduler::JobPlan& job : plan.jobs) {
    const auto training_job = objects.training_jobs.find({job.id.job_namespace, job.id.name});
    if (training_job == objects.training_jobs.end()) continue;
    const auto view = observe::view_training_job(*training_job->second);
    if (!view.ok() || view->mode != observe::Mode::kAuto || !view->may_have_workers()) continue;
    const kube::ObjectPointer pool = observe::own_pool(objects, *training_job->second);
    if (!pool || observe::integer_field(*pool, "/spec/replicas") == job.workers) continue;
    orders.push_back(order_of(*training_job->second, *pool, job));
  }
  std::stable_sort(orders.begin(), orders.end(),
                   [](const ScaleOrder& a, const ScaleOrder& b) { return (a.to < a.from) > (b.to < b.from); });
  return orders;
}

}  // namespace sluice::decide
