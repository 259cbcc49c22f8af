#include "operator/fault_simulation/cluster_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "operator/api/feeder_view.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_job.h"
#include "src/kube/timestamp.h"

namespace sluice::simulation {

using api::Pod;
using kube::Json;

namespace {

void set_condition(Json& status, const char* type, bool truth, const std::string& now, const char* reason = "") {
  Json& conditions = status["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  for (Json& condition : conditions) {
    if (condition["type"] != type) continue;
    if (condition["status"] == (truth ? "True" : "False")) return;
    condition["status"] = truth ? "True" : "False";
    condition["lastTransitionTime"] = now;
    return;
  }
  conditions.push_back({{"type", type}, {"status", truth ? "True" : "False"}, {"lastTransitionTime", now}});
  if (*reason != '\0') conditions.back()["reason"] = reason;
}

// Whether the Job's controller replaces pods that fail. No workload's pods fail so often that it gives up later.
bool retries(const Json& job) { return api::member(api::member(job, "spec"), "backoffLimit") != 0; }

}  // namespace

ClusterModel::ClusterModel(kube::fake::ApiServer& server, const VirtualClock& clock, Random& random,
                           const Workload& workload)
    : server_(server), clock_(clock), random_(random), workload_(workload) {
  for (const Json& node : workload.nodes) add_node(node.at("name"));
}

void ClusterModel::schedule(Task task, const kube::ObjectKey& key, const std::string& uid, double least_seconds,
                            double most_seconds) {
  const Due due{task, key, uid};
  if (!planned_.insert(due).second) return;
  const double pause = random_.between(least_seconds, most_seconds);
  agenda_.emplace(clock_.now() + std::chrono::milliseconds(static_cast<int>(pause * 1000)), due);
}

void ClusterModel::on_change(const kube::fake::StoredChange& change) {
  if (change.kind->name == "Pod") on_pod(change);
  if (change.kind->name == "Job" && !change.deleted) schedule(Task::kSyncJob, change.key, "", 0.01, 1);
  const bool may_be_garbage = change.deleted || api::Object(*change.after).deleting() ||
                              (!change.before && !api::Object(*change.after).controller_uid().empty());
  if (may_be_garbage) schedule(Task::kCollect, {}, "", 0.1, 2);
}

void ClusterModel::on_pod(const kube::fake::StoredChange& change) {
  const Pod pod(*change.after);
  const std::string uid = pod.uid();
  if (!change.before) schedule(Task::kBind, change.key, uid, 0.01, 1);
  const auto feeder = api::view_feeder(*change.after);
  if (feeder && pod.phase() == "Running" && feeder->resize != api::FeederView::Resize::kDone)
    schedule(Task::kResize, change.key, uid, 0.2, 2);
  if (!change.deleted && pod.deleting()) schedule(Task::kRemove, change.key, uid, 0.5, 4);
  // A trainer's Job has the name of its TrainingJob.
  if (!pod.is_trainer()) return;
  if ((change.deleted || pod.deleting()) && !pod.succeeded()) jobs_with_lost_pods_.insert(pod.controller_uid());
  schedule(Task::kSyncJob, {change.key.namespace_, pod.job()}, "", 0.01, 1);
}

bool ClusterModel::has_work() const { return !agenda_.empty() && agenda_.begin()->first <= clock_.now(); }

Clock::TimePoint ClusterModel::next_due() const {
  return agenda_.empty() ? Clock::TimePoint::max() : agenda_.begin()->first;
}

bool ClusterModel::is_training() const {
  return std::any_of(planned_.begin(), planned_.end(), [](const Due& due) { return due.task == Task::kFinish; });
}

std::string ClusterModel::step() {
  const Due due = agenda_.begin()->second;
  agenda_.erase(agenda_.begin());
  planned_.erase(due);
  switch (due.task) {
    case Task::kBind: bind(due); return "scheduler: " + due.key.to_string();
    case Task::kStart: start(due); return "kubelet starts " + due.key.to_string();
    case Task::kResize: resize(due); return "kubelet resizes " + due.key.to_string();
    case Task::kFinish: finish(due); return "the trainer ends: " + due.key.to_string();
    case Task::kEvict:  // one that has ended meanwhile stays
      if (serving(due)) server_.remove(kube::kPods, due.key, {.uid = due.uid});
      return "evicts " + due.key.to_string();
    case Task::kRemove:
      server_.remove(kube::kPods, due.key, {.uid = due.uid, .grace_period_seconds = 0});
      return "kubelet removes " + due.key.to_string();
    case Task::kSyncJob: sync_job(due.key); return "Job controller: " + due.key.to_string();
    case Task::kCollect: server_.collect_garbage(); return "garbage collector";
  }
  return "";
}

void ClusterModel::bind(const Due& due) {
  const auto pod = server_.get(kube::kPods, due.key);
  if (!pod || Pod(*pod).uid() != due.uid || Pod(*pod).deleting()) return;
  std::map<std::string, std::int64_t> free;
  const api::NodeRules rules = Pod(*pod).node_rules();
  for (const auto& [key, node] : server_.all(kube::kNodes))  // a drained one has a taint
    if (rules.admit(api::Node(*node))) free[key.name] = api::Node(*node).allocatable_millicores();
  for (const auto& [key, other] : server_.all(kube::kPods))
    if (const auto node = free.find(Pod(*other).node()); node != free.end() && !Pod(*other).ended())
      node->second -= reserved_millicores(*other);
  const auto widest =
      std::max_element(free.begin(), free.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (widest == free.end() || widest->second < Pod(*pod).request_millicores()) {
    // Of workers the model does not say it: they would be given up and tried again for ever.
    if (Pod(*pod).is_trainer() && !Pod(*pod).hindrance())
      modify_status(due, [](Json& object, const std::string& now) {
        set_condition(object["status"], "PodScheduled", false, now, "Unschedulable");
      });
    return schedule(Task::kBind, due.key, due.uid, 2, 5);
  }
  server_.modify(kube::kPods, due.key, [&](Json& object) { object["spec"]["nodeName"] = widest->first; });
  schedule(Task::kStart, due.key, due.uid, 0.5, 6);
}

void ClusterModel::modify_status(const Due& due, const std::function<void(Json&, const std::string& now)>& modify) {
  const std::string now = kube::format_time(clock_.wall_now() + node_skew_);
  server_.modify(
      kube::kPods, due.key, [&](Json& object) { modify(object, now); }, "status");
}

kube::ObjectPointer ClusterModel::serving(const Due& due) const {
  const auto pod = server_.get(kube::kPods, due.key);
  const bool serves = pod && Pod(*pod).uid() == due.uid && Pod(*pod).serves();
  return serves && server_.get(kube::kNodes, {"", Pod(*pod).node()}) ? pod : nullptr;
}

// A worker whose limit is below what it uses never becomes ready: it is stopped, and started again, for ever.
bool ClusterModel::runs_out_of_memory(const Json& object) const {
  const Pod pod(object);
  const auto physics = workload_.physics.find(pod.job());
  const std::int64_t limit = pod.worker_memory_limit_bytes();
  return pod.is_worker() && physics != workload_.physics.end() && limit > 0 &&
         limit < physics->second.worker_memory_bytes;
}

void ClusterModel::start(const Due& due) {
  const auto pod = serving(due);
  if (!pod) return;
  if (runs_out_of_memory(*pod))
    return modify_status(due, [](Json& object, const std::string&) {
      object["status"]["phase"] = "Running";
      object["status"]["containerStatuses"] = Json::array({{{"name", api::kWorkerContainer}}});
      object["status"]["containerStatuses"][0]["lastState"] = {{"terminated", {{"reason", "OOMKilled"}}}};
    });
  modify_status(due, [&](Json& object, const std::string& now) {
    object["status"]["phase"] = "Running";
    set_condition(object["status"], "Ready", true, now);
    report_feeder(object);
  });
  if (!Pod(*pod).is_trainer()) return;
  const auto physics = workload_.physics.find(Pod(*pod).job());
  if (physics == workload_.physics.end() || !std::isfinite(physics->second.train_seconds)) return;
  schedule(Task::kFinish, due.key, due.uid, physics->second.train_seconds, physics->second.train_seconds);
}

void ClusterModel::finish(const Due& due) {
  if (!serving(due)) return;
  modify_status(due, [](Json& object, const std::string& now) {
    object["status"]["phase"] = "Succeeded";
    set_condition(object["status"], "Ready", false, now);
  });
}

void ClusterModel::sync_job(const kube::ObjectKey& key) {
  const auto stored = server_.get(kube::kJobs, key);
  if (!stored) return;
  const api::TrainerJob job(*stored);
  if (job.deleting() || job.over()) return;
  const bool suspended = job.suspended();
  const bool lost_pods = jobs_with_lost_pods_.erase(job.uid()) > 0;
  if (lost_pods && !suspended && !retries(*stored)) return fail_job(job);
  const auto wanted = static_cast<int>(job.completions());
  int active = 0;
  int ready = 0;
  std::set<int> done;
  std::set<int> present;
  for (const auto& [pod_key, object] : server_.all(kube::kPods)) {
    const Pod pod(*object);
    if (!pod.controlled_by(job)) continue;
    const int index = pod.completion_index();
    if (pod.succeeded()) done.insert(index);
    if (!pod.serves()) continue;
    if (suspended) {
      server_.remove(kube::kPods, pod_key, {.uid = pod.uid()});
      continue;
    }
    present.insert(index);
    ++active;
    if (pod.ready()) ++ready;
  }
  for (int index = 0; index < wanted && !suspended; ++index) {
    if (present.contains(index) || done.contains(index)) continue;
    create_trainer(job, index);
    ++active;
  }
  const std::string now = kube::format_time(clock_.wall_now());
  server_.modify(
      kube::kJobs, key,
      [&](Json& object) {
        Json& status = object["status"];
        status["active"] = active;
        status["ready"] = ready;
        status["succeeded"] = done.size();
        set_condition(status, "Suspended", suspended, now);
        if (static_cast<int>(done.size()) == wanted) set_condition(status, "Complete", true, now);
      },
      "status");
}

// Pods of a Job that has failed go; it counts none of them.
void ClusterModel::fail_job(const api::TrainerJob& job) {
  for (const auto& [key, object] : server_.all(kube::kPods))
    if (const Pod pod(*object); pod.controlled_by(job) && pod.serves())
      server_.remove(kube::kPods, key, {.uid = pod.uid()});
  const std::string now = kube::format_time(clock_.wall_now());
  server_.modify(
      kube::kJobs, job.key(),
      [&](Json& object) {
        Json& status = object["status"];
        status["active"] = 0;
        status["ready"] = 0;
        set_condition(status, "Failed", true, now, "BackoffLimitExceeded");
      },
      "status");
}

void ClusterModel::create_trainer(const api::TrainerJob& job, int index) {
  Json pod = job.pod_template();
  Json& metadata = pod["metadata"];
  const std::string name = job.name();
  metadata["namespace"] = job.name_space();
  metadata["name"] = name + "-" + std::to_string(index) + "-" + std::to_string(++trainers_created_);
  metadata["annotations"][std::string(api::kCompletionIndexAnnotation)] = std::to_string(index);
  metadata["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                              {"kind", "Job"},
                                              {"name", name},
                                              {"uid", job.uid()},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}});
  server_.create(kube::kPods, std::move(pod));
}

}  // namespace sluice::simulation
