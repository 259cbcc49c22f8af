// The part of ClusterRun in which people act.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/data_worker_pool.h"
#include "operator/api/persistent_volume_claim.h"
#include "operator/fault_simulation/cluster_run.h"

namespace sluice::simulation {

using kube::Json;
using kube::fake::Reply;
using std::chrono::seconds;

namespace {

// Of "dataworkerpools/a" or "a".
kube::ObjectKey key_of(const std::string& path) { return {"default", path.substr(path.find('/') + 1)}; }

kube::ObjectKey key_in(const Json& action, const char* member) { return key_of(action.at(member)); }

}  // namespace

// In the timeline's order; what cannot be done yet (the pool is not there) is tried again.
void ClusterRun::act_as_user() {
  while (next_user_action_ < workload_.timeline.size() && user_waits_until_ <= clock_.now() &&
         VirtualClock::at_seconds(workload_.timeline[next_user_action_].at_seconds) <= clock_.now()) {
    const Json& action = workload_.timeline[next_user_action_].action;
    if (is_awaited(action) && perform(action)) {
      ++next_user_action_;
      last_user_action_ = clock_.now();
      say("the user: " + action.dump());
    } else {
      user_waits_until_ = clock_.now() + seconds(1);
    }
    note_changes("the user", false);
  }
}

// Whether it is time for the action.
bool ClusterRun::is_awaited(const Json& action) {
  if (action.contains("onceThereIsJob") && !server_.get(kube::kJobs, key_in(action, "onceThereIsJob"))) return false;
  if (action.contains("onceTold") && !is_told(server_, key_in(action, "onceTold"))) return false;
  if (!action.contains("onceServed")) return true;
  const auto pool = server_.get(kube::kDataWorkerPools, key_in(action, "onceServed"));
  return pool && api::DataWorkerPool(*pool).ready_replicas() > 0;
}

// False: it cannot be done yet.
bool ClusterRun::perform(const Json& wanted) {
  Json action = wanted;
  const bool damaged = damage(action);
  server_.set_checks_custom_kinds(!(damaged && plan_.stored_before));
  const Reply reply = write(action);
  server_.set_checks_custom_kinds(true);
  if (reply.status == 404) return action.value("ifThere", false);
  if (reply.status == 409) return false;
  // What is damaged may be refused, for a reason that names the field.
  if (!reply.ok() && !(damaged && reply.body->value("message", "").find("spec.") != std::string::npos))
    oracle_.violated("the workload's own action is refused: " + reply.body->dump());
  return true;
}

// Does the plan's damages to what the action writes. False: it has none for it.
bool ClusterRun::damage(Json& action) const {
  const auto odd = odd_template(action);
  if (!odd) return false;
  bool damaged = false;
  for (const TemplateDamage& damage : plan_.damages) {
    if (damage.object != odd->object) continue;
    damage_template(damage, action.at(odd->place));
    damaged = true;
  }
  return damaged;
}

Reply ClusterRun::write(const Json& action) {
  if (action.contains("create")) return server_.create(kube::kTrainingJobs, action.at("create"));
  if (action.contains("createPool")) return server_.create(kube::kDataWorkerPools, action.at("createPool"));
  if (action.contains("createClaim")) return server_.create(api::kPersistentVolumeClaims, action.at("createClaim"));
  if (action.contains("patch"))
    return server_.modify(kube::kTrainingJobs, key_in(action, "patch"),
                          [&](Json& object) { object.merge_patch(action.at("with")); });
  if (action.contains("scale"))
    return server_.modify(kube::kDataWorkerPools, key_in(action, "scale"),
                          [&](Json& object) { object["spec"]["replicas"] = action.at("replicas"); });
  if (action.contains("overwrite")) return overwrite(action);
  if (action.contains("putBack")) return put_back(key_in(action, "putBack"));
  if (action.contains("correct")) return correct(action);
  if (action.contains("drain") || action.contains("removeNode") || action.contains("addNode"))
    return change_node(action);
  return server_.remove(kube::kTrainingJobs, key_in(action, "delete"));
}

// A template that nothing is wrong with is left as the operator has made it.
Reply ClusterRun::overwrite(const Json& action) {
  const kube::ObjectKey key = key_in(action, "overwrite");
  const auto pool = server_.get(kube::kDataWorkerPools, key);
  if (!pool) return {404, {}};
  const bool damaged = std::any_of(plan_.damages.begin(), plan_.damages.end(),
                                   [&](const TemplateDamage& damage) { return damage.object == key.name; });
  if (!damaged) return {200, {}};
  Json& before = overwritten_[key] = pool->at("spec").at("template");
  // Another release's (operator_versions.cc): put back by a person it would be that person's, and stay for ever.
  if (const auto spec = before.find("spec"); spec != before.end() && spec->is_object())
    spec->erase("priorityClassName");
  return server_.modify(kube::kDataWorkerPools, key,
                        [&](Json& object) { object["spec"]["template"] = action.at("template"); });
}

Reply ClusterRun::put_back(const kube::ObjectKey& key) {
  const auto before = overwritten_.find(key);
  if (before == overwritten_.end()) return {200, {}};
  return server_.modify(kube::kDataWorkerPools, key,
                        [&](Json& object) { object["spec"]["template"] = before->second; });
}

// The template becomes that of the workload. With "remake" its job is deleted, and made again.
Reply ClusterRun::correct(const Json& action) {
  const std::string path = action.at("correct");
  const bool is_job = path.starts_with("trainingjobs/");
  const kube::Resource& kind = is_job ? kube::kTrainingJobs : kube::kDataWorkerPools;
  const char* verb = is_job ? "create" : "createPool";
  const kube::ObjectKey key = key_of(path);
  const auto made = std::find_if(workload_.timeline.begin(), workload_.timeline.end(), [&](const UserAction& each) {
    const auto odd = odd_template(each.action);
    return odd && odd->object == key.name && each.action.contains(verb);
  });
  const Json& right = made->action.at(verb);
  const Json::json_pointer place(made->action.at("odd").get<std::string>());
  const auto there = server_.get(kind, key);
  if (!there) return server_.create(kind, right);
  if (there->contains(place) && there->at(place) == right.at(place)) return {200, {}};
  if (!action.value("remake", false))
    return server_.modify(kind, key, [&](Json& object) { object[place] = right.at(place); });
  server_.remove(kind, key);
  return {409, {}};  // made at the next try
}

}  // namespace sluice::simulation
