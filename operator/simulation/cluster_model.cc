#include "operator/simulation/cluster_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "operator/observe/fields.h"
#include "operator/observe/pod_view.h"
#include "src/kube/quantity.h"
#include "src/kube/timestamp.h"

namespace sluice::simulation {

using kube::Json;
using observe::field;
using observe::integer_field;
using observe::text_field;

namespace {

bool is_over(const Json& pod) {
  const std::string phase = text_field(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

bool is_leaving(const Json& object) { return !field(object, "/metadata/deletionTimestamp").is_null(); }

void set_condition(Json& status, const char* type, bool truth, const std::string& now) {
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
}

}  // namespace

std::int64_t requested_millicores(const Json& pod) { return observe::pod_request_millicores(pod); }

ClusterModel::ClusterModel(kube::fake::ApiServer& server, const VirtualClock& clock, Random& random,
                           const Workload& workload)
    : server_(server), clock_(clock), random_(random), workload_(workload) {
  for (const Json& node : workload.nodes) {
    const std::string name = node.at("name");
    server_.create(kube::kNodes, {{"metadata", {{"name", name}}}});
    server_.modify(
        kube::kNodes, {"", name},
        [&](Json& object) {
          object["status"] = {{"allocatable", {{"cpu", node.at("cpu")}}},
                              {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
        },
        "status");
  }
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
  const bool may_be_garbage = change.deleted || is_leaving(*change.after) ||
                              (!change.before && !field(*change.after, "/metadata/ownerReferences").is_null());
  if (may_be_garbage) schedule(Task::kCollect, {}, "", 0.1, 2);
}

void ClusterModel::on_pod(const kube::fake::StoredChange& change) {
  const std::string uid = text_field(*change.after, "/metadata/uid");
  if (!change.before) schedule(Task::kBind, change.key, uid, 0.01, 1);
  if (!change.deleted && is_leaving(*change.after)) schedule(Task::kRemove, change.key, uid, 0.5, 4);
  for (const Json& owner : field(*change.after, "/metadata/ownerReferences"))
    if (owner.at("kind") == "Job")
      schedule(Task::kSyncJob, {change.key.namespace_, owner.at("name").get<std::string>()}, "", 0.01, 1);
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
    case Task::kFinish: finish(due); return "the trainer ends: " + due.key.to_string();
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
  if (!pod || text_field(*pod, "/metadata/uid") != due.uid || is_leaving(*pod)) return;
  std::map<std::string, std::int64_t> free;
  for (const auto& [key, node] : server_.all(kube::kNodes))
    free[key.name] = kube::parse_millicores(text_field(*node, "/status/allocatable/cpu")).value_or(0);
  for (const auto& [key, other] : server_.all(kube::kPods))
    if (const auto node = free.find(text_field(*other, "/spec/nodeName")); node != free.end() && !is_over(*other))
      node->second -= requested_millicores(*other);
  const auto widest =
      std::max_element(free.begin(), free.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (widest == free.end() || widest->second < requested_millicores(*pod))
    return schedule(Task::kBind, due.key, due.uid, 2, 5);
  server_.modify(kube::kPods, due.key, [&](Json& object) { object["spec"]["nodeName"] = widest->first; });
  schedule(Task::kStart, due.key, due.uid, 0.5, 6);
}

void ClusterModel::start(const Due& due) {
  const auto pod = server_.get(kube::kPods, due.key);
  if (!pod || text_field(*pod, "/metadata/uid") != due.uid || is_leaving(*pod) || is_over(*pod)) return;
  const std::string now = kube::format_time(clock_.wall_now());
  server_.modify(
      kube::kPods, due.key,
      [&](Json& object) {
        object["status"]["phase"] = "Running";
        set_condition(object["status"], "Ready", true, now);
      },
      "status");
  if (text_field(*pod, "/metadata/labels/sluice.dev~1component") != "trainer") return;
  const auto physics = workload_.physics.find(text_field(*pod, "/metadata/labels/sluice.dev~1job"));
  if (physics == workload_.physics.end() || !std::isfinite(physics->second.train_seconds)) return;
  schedule(Task::kFinish, due.key, due.uid, physics->second.train_seconds, physics->second.train_seconds);
}

void ClusterModel::finish(const Due& due) {
  const auto pod = server_.get(kube::kPods, due.key);
  if (!pod || text_field(*pod, "/metadata/uid") != due.uid || is_leaving(*pod) || is_over(*pod)) return;
  const std::string now = kube::format_time(clock_.wall_now());
  server_.modify(
      kube::kPods, due.key,
      [&](Json& object) {
        object["status"]["phase"] = "Succeeded";
        set_condition(object["status"], "Ready", false, now);
      },
      "status");
}

void ClusterModel::sync_job(const kube::ObjectKey& key) {
  const auto job = server_.get(kube::kJobs, key);
  if (!job || is_leaving(*job) || observe::condition_is_true(*job, "Complete")) return;
  const bool suspended = observe::boolean_field(*job, "/spec/suspend");
  const auto wanted = static_cast<int>(integer_field(*job, "/spec/completions"));
  int active = 0;
  int ready = 0;
  std::set<int> done;
  std::set<int> present;
  for (const auto& [pod_key, pod] : server_.all(kube::kPods)) {
    if (!observe::controlled_by(*pod, *job)) continue;
    const int index =
        std::stoi(text_field(*pod, "/metadata/annotations/batch.kubernetes.io~1job-completion-index", "0"));
    if (text_field(*pod, "/status/phase") == "Succeeded") done.insert(index);
    if (is_over(*pod) || is_leaving(*pod)) continue;
    if (suspended) {
      server_.remove(kube::kPods, pod_key, {.uid = text_field(*pod, "/metadata/uid")});
      continue;
    }
    present.insert(index);
    ++active;
    if (observe::condition_is_true(*pod, "Ready")) ++ready;
  }
  for (int index = 0; index < wanted && !suspended; ++index) {
    if (present.contains(index) || done.contains(index)) continue;
    create_trainer(*job, index);
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

void ClusterModel::create_trainer(const Json& job, int index) {
  Json pod = field(job, "/spec/template");
  Json& metadata = pod["metadata"];
  const std::string name = text_field(job, "/metadata/name");
  metadata["namespace"] = text_field(job, "/metadata/namespace");
  metadata["name"] = name + "-" + std::to_string(index) + "-" + std::to_string(++trainers_created_);
  metadata["annotations"]["batch.kubernetes.io/job-completion-index"] = std::to_string(index);
  metadata["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                              {"kind", "Job"},
                                              {"name", name},
                                              {"uid", text_field(job, "/metadata/uid")},
                                              {"controller", true},
                                              {"blockOwnerDeletion", true}}});
  server_.create(kube::kPods, std::move(pod));
}

}  // namespace sluice::simulation
