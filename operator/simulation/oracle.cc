#include "operator/simulation/oracle.h"

#include "operator/names.h"
#include "operator/observe/fields.h"

namespace sluice::simulation {

using kube::Json;
using observe::field;
using observe::integer_field;
using observe::text_field;

namespace {

constexpr std::size_t kMaxViolations = 20;  // more say no more

std::string controller_uid(const Json& object) {
  for (const Json& owner : field(object, "/metadata/ownerReferences"))
    if (owner.value("controller", false)) return owner.at("uid");
  return "";
}

bool is_live(const Json& pod) {
  const std::string phase = text_field(pod, "/status/phase");
  return field(pod, "/metadata/deletionTimestamp").is_null() && phase != "Failed" && phase != "Succeeded";
}

bool is_worker(const Json& pod) { return text_field(pod, "/metadata/labels/sluice.dev~1component") == "worker"; }

Json summary_of_conditions(const Json& object) {
  Json summary = Json::object();
  for (const Json& condition : field(object, "/status/conditions"))
    summary[text_field(condition, "/type")] = text_field(condition, "/status") + " " + text_field(condition, "/reason");
  return summary;
}

Json without_history(const Json& object) {
  Json kept = object;
  Json& metadata = kept["metadata"];
  for (const char* member : {"uid", "resourceVersion", "generation", "creationTimestamp"}) metadata.erase(member);
  if (metadata.contains("ownerReferences"))
    for (Json& owner : metadata["ownerReferences"]) owner.erase("uid");
  for (const char* member : {"status", "data"}) kept.erase(member);
  // A pool that was scaled up and down again says so; one that was never scaled does not.
  if (metadata.contains("annotations")) metadata["annotations"].erase(std::string(control::kPlannedWorkersAnnotation));
  if (metadata.contains("annotations") && metadata["annotations"].empty()) metadata.erase("annotations");
  return kept;
}

}  // namespace

void Oracle::violated(std::string what) {
  if (violations_.size() < kMaxViolations) violations_.push_back(std::move(what));
}

void Oracle::on_change(const kube::fake::StoredChange& change, bool by_operator) {
  const std::string& kind = change.kind->name;
  if (kind == "DataWorkerPool") on_pool(change);
  if (kind == "Pod") on_pod(change, by_operator);
  if (kind == "TrainingJob") on_training_job(change);
  const bool is_deletion =
      change.deleted || (change.before && field(*change.before, "/metadata/deletionTimestamp").is_null() &&
                         !field(*change.after, "/metadata/deletionTimestamp").is_null());
  if (by_operator && is_deletion && !(kind == "Pod" && is_worker(*change.after)))
    violated("the operator deletes " + kind + " " + change.key.to_string());
}

void Oracle::check_generation(const kube::fake::StoredChange& change) {
  if (!change.before || change.deleted) return;
  const std::int64_t before = integer_field(*change.before, "/status/observedGeneration");
  const std::int64_t after = integer_field(*change.after, "/status/observedGeneration");
  if (after < before)
    violated("the status of " + change.kind->name + " " + change.key.to_string() + " goes back from generation " +
             std::to_string(before) + " to " + std::to_string(after));
}

void Oracle::on_pool(const kube::fake::StoredChange& change) {
  check_generation(change);
  std::int64_t& most = most_planned_[text_field(*change.after, "/metadata/uid")];
  most = std::max(most, integer_field(*change.after, "/spec/replicas"));
}

void Oracle::on_pod(const kube::fake::StoredChange& change, bool by_operator) {
  const Json& pod = *change.after;
  if (!is_worker(pod)) return;
  const std::string pool = controller_uid(pod);
  std::set<std::string>& live = live_workers_[pool];
  if (change.deleted || !is_live(pod))
    live.erase(change.key.name);
  else
    live.insert(change.key.name);
  const auto count = static_cast<std::int64_t>(live.size());
  if (by_operator && !change.before && count > most_planned_[pool])
    violated("pool of " + change.key.to_string() + " has " + std::to_string(count) +
             " live pods, and was never told to have more than " + std::to_string(most_planned_[pool]));
}

void Oracle::on_training_job(const kube::fake::StoredChange& change) {
  if (!change.before || change.deleted) return;
  for (const char* outcome : {"Succeeded", "Failed"})
    if (observe::condition_is_true(*change.before, outcome) && !observe::condition_is_true(*change.after, outcome))
      violated("TrainingJob " + change.key.to_string() + " is no longer " + outcome);
  check_generation(change);
}

void Oracle::check_orphans(kube::fake::ApiServer& server) {
  std::set<std::string> uids;
  const kube::Resource kinds[] = {kube::kTrainingJobs, kube::kDataWorkerPools, kube::kJobs,
                                  kube::kServices,     kube::kSecrets,         kube::kPods};
  for (const kube::Resource& kind : kinds)
    for (const auto& [key, object] : server.all(kind)) uids.insert(text_field(*object, "/metadata/uid"));
  for (const kube::Resource& kind : kinds)
    for (const auto& [key, object] : server.all(kind))
      if (const std::string owner = controller_uid(*object);
          kind != kube::kTrainingJobs && (owner.empty() || !uids.contains(owner)))
        violated(std::string(kind.kind) + " " + key.to_string() + " is left without an owner");
}

Json final_state(kube::fake::ApiServer& server) {
  Json state = Json::object();
  for (const kube::Resource& kind : {kube::kServices, kube::kSecrets, kube::kJobs})
    for (const auto& [key, object] : server.all(kind)) {
      Json kept = without_history(*object);
      if (kind == kube::kJobs) {
        // Carries the Job's own uid in labels.
        kept["spec"].erase("selector");
        kept["spec"]["template"]["metadata"].erase("labels");
        kept["ready"] = integer_field(*object, "/status/ready");
      }
      state[std::string(kind.kind) + " " + key.to_string()] = std::move(kept);
    }
  for (const auto& [key, pool] : server.all(kube::kDataWorkerPools)) {
    Json kept = without_history(*pool);
    kept["status"] = {{"replicas", field(*pool, "/status/replicas")},
                      {"ready", field(*pool, "/status/readyReplicas")},
                      {"current", field(*pool, "/status/observedGeneration") == field(*pool, "/metadata/generation")},
                      {"conditions", summary_of_conditions(*pool)}};
    state["DataWorkerPool " + key.to_string()] = std::move(kept);
  }
  for (const auto& [key, job] : server.all(kube::kTrainingJobs)) {
    Json kept = without_history(*job);
    kept["status"] = {{"workers", field(*job, "/status/workers")},
                      {"current", field(*job, "/status/observedGeneration") == field(*job, "/metadata/generation")},
                      {"conditions", summary_of_conditions(*job)}};
    // What was measured last of a job that is over depends on when.
    if (!observe::condition_is_true(*job, "Succeeded")) kept["bottleneck"] = field(*job, "/status/bottleneck");
    state["TrainingJob " + key.to_string()] = std::move(kept);
  }
  for (const auto& [key, pod] : server.all(kube::kPods)) {
    const std::string what = "pods of " + text_field(*pod, "/metadata/labels/sluice.dev~1job") + ": " +
                             text_field(*pod, "/metadata/labels/sluice.dev~1component") + " " +
                             text_field(*pod, "/metadata/labels/sluice.dev~1template-hash") + " " +
                             text_field(*pod, "/status/phase");
    state[what] = state.value(what, 0) + 1;
  }
  return state;
}

}  // namespace sluice::simulation
