#include "operator/fault_simulation/oracle.h"

#include "operator/act/certificates.h"
#include "operator/api/conditions.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/feeder_view.h"
#include "operator/api/fingerprint.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/network_policy.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/tls_secret.h"
#include "operator/api/trainer_job.h"
#include "operator/api/training_job.h"
#include "operator/testing/certificate_trust.h"

namespace sluice::simulation {

using api::DataWorkerPool;
using api::member;
using api::Object;
using api::Pod;
using api::TrainingJob;
using kube::Json;

namespace {

constexpr std::size_t kMaxViolations = 20;  // more say no more
// Of an object. A status that moves is written each second, a storm thousands of times.
constexpr int kMostWritesPerMinute = 300;

Json summary_of_conditions(const Object& object) {
  Json summary = Json::object();
  for (const Json& condition : object.conditions())
    summary[api::text_member(condition, "type")] =
        api::text_member(condition, "status") + " " + api::text_member(condition, "reason");
  return summary;
}

const Json& observed_generation(const Object& object) { return member(object.status(), "observedGeneration"); }

Json without_history(const Json& object) {
  Json kept = object;
  Json& metadata = kept["metadata"];
  for (const char* member : {"uid", "resourceVersion", "generation", "creationTimestamp"}) metadata.erase(member);
  if (metadata.contains("ownerReferences"))
    for (Json& owner : metadata["ownerReferences"]) owner.erase("uid");
  for (const char* member : {"status", "data"}) kept.erase(member);
  // A pool that was scaled up and down again says so; one that was never scaled does not.
  if (metadata.contains("annotations")) metadata["annotations"].erase(std::string(api::kPlannedWorkersAnnotation));
  // A gang that lost a pod was started again.
  if (metadata.contains("annotations")) metadata["annotations"].erase(std::string(api::kRestartsAnnotation));
  if (metadata.contains("annotations") && metadata["annotations"].empty()) metadata.erase("annotations");
  return kept;
}

// A Job keeps the image of the release of the operator that made it.
void forget_bundle_image(Json& pod) {
  if (pod.contains("initContainers"))
    for (Json& container : pod["initContainers"])
      if (container.value("name", "") == api::kBundleContainer) container.erase("image");
}

// The operator's own pools have an owner.
bool is_a_persons(const kube::Resource& kind, const std::string& owner) {
  return kind == kube::kDataWorkerPools && owner.empty();
}

// What its workers needed is not made again when it is deleted.
bool is_of_finished_job(kube::fake::ApiServer& server, const Json& child) {
  const Object object(child);
  const auto job = server.get(kube::kTrainingJobs, {object.name_space(), object.label(api::kJobLabel)});
  return job && TrainingJob(*job).succeeded();
}

// Made from the template that its pool has now.
bool is_current(kube::fake::ApiServer& server, const Pod& worker) {
  const auto pool = server.get(kube::kDataWorkerPools, {worker.name_space(), worker.job()});
  return pool && worker.template_hash() == api::fingerprint(DataWorkerPool(*pool).pod_template());
}

}  // namespace

void Oracle::violated(std::string what) {
  if (violations_.size() < kMaxViolations) violations_.push_back(std::move(what));
}

void Oracle::count_write(const std::string& object) {
  Writes& writes = writes_[object];
  if (clock_.now() - writes.since >= std::chrono::minutes(1)) writes = {clock_.now()};
  if (++writes.count <= kMostWritesPerMinute || has_seen_storm_) return;
  has_seen_storm_ = true;
  violated("the operator writes " + object + " more than " + std::to_string(kMostWritesPerMinute) + " times a minute");
}

void Oracle::on_change(const kube::fake::StoredChange& change, bool by_operator) {
  const std::string& kind = change.kind->name;
  if (by_operator) count_write(change.kind->plural + " " + change.key.to_string());
  if (kind == "DataWorkerPool") on_pool(change);
  if (kind == "Node") on_node(change);
  if (kind == "Pod") on_pod(change, by_operator);
  if (kind == "TrainingJob") on_training_job(change);
  if (kind == "Secret") on_secret(change, by_operator);
  const bool is_deletion =
      change.deleted || (change.before && !Object(*change.before).deleting() && Object(*change.after).deleting());
  const bool is_restart = kind == "Job" && api::TrainerJob(*change.after).failed_by_pods();
  if (by_operator && is_deletion && !is_restart && !(kind == "Pod" && Pod(*change.after).is_worker()))
    violated("the operator deletes " + kind + " " + change.key.to_string());
}

void Oracle::check_generation(const kube::fake::StoredChange& change) {
  if (!change.before || change.deleted) return;
  const Json& before = observed_generation(Object(*change.before));
  const Json& after = observed_generation(Object(*change.after));
  if (after < before)
    violated("the status of " + change.kind->name + " " + change.key.to_string() + " goes back from generation " +
             before.dump() + " to " + after.dump());
}

void Oracle::on_pool(const kube::fake::StoredChange& change) {
  check_generation(change);
  const DataWorkerPool pool(*change.after);
  std::int64_t& most = most_planned_[pool.uid()];
  most = std::max(most, pool.replicas());
}

void Oracle::on_node(const kube::fake::StoredChange& change) {
  changed_nodes_[change.key.name] = change.deleted ? nullptr : change.after;
}

void Oracle::check_node_of(const kube::fake::StoredChange& change) {
  const Pod pod(*change.after);
  const bool was_put = change.before && !Pod(*change.before).node().empty();
  const auto node = changed_nodes_.find(pod.node());
  if (change.deleted || was_put || node == changed_nodes_.end()) return;
  if (!node->second || !pod.node_rules().admit(api::Node(*node->second)))
    violated("pod " + change.key.to_string() + " is put on node " + node->first + ", which takes it no more");
}

void Oracle::on_pod(const kube::fake::StoredChange& change, bool by_operator) {
  const Pod pod(*change.after);
  check_node_of(change);
  if (!pod.is_worker()) return;
  const std::string pool = pod.controller_uid();
  std::set<std::string>& live = live_workers_[pool];
  if (change.deleted || !pod.serves())
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
    if (Object(*change.before).condition_is_true(outcome) && !Object(*change.after).condition_is_true(outcome))
      violated("TrainingJob " + change.key.to_string() + " is no longer " + outcome);
  check_generation(change);
}

void Oracle::on_secret(const kube::fake::StoredChange& change, bool by_operator) {
  aged_at_.erase(change.key);
  if (!change.before || change.deleted) return;
  if (!by_operator) {
    aged_at_[change.key] = clock_.now();
    return;
  }
  const api::TlsSecret before(*change.before), after(*change.after);
  const auto now = clock_.wall_now();
  const auto trusts = [&](const api::TlsSecret& one, const api::TlsSecret& other) {
    return control::testing::trusts(one.text(api::kAuthoritiesEntry), other.text(api::kCertificateEntry), now);
  };
  if (!trusts(before, before)) return;  // they had ended
  if (!trusts(before, after) || !trusts(after, before) || !trusts(after, after))
    violated("the certificates of " + change.key.to_string() + " change without a time in which both are trusted");
}

void Oracle::check_certificates(kube::fake::ApiServer& server) {
  const auto now = clock_.wall_now();
  for (const auto& [key, object] : server.all(kube::kSecrets)) {
    const api::TlsSecret secret(*object);
    const auto job = server.get(kube::kTrainingJobs, {secret.name_space(), secret.label(api::kJobLabel)});
    // A Secret is looked at every five minutes; that of a job that is over stays as it is.
    const auto aged = aged_at_.find(key);
    const bool may_be_old = aged != aged_at_.end() && clock_.now() - aged->second < std::chrono::minutes(6);
    if (may_be_old || !job || TrainingJob(*job).succeeded() || TrainingJob(*job).failed()) continue;
    const auto shown = act::validity_of(secret.text(api::kCertificateEntry));
    if (!shown.ok() || shown->until <= now) violated("the certificate of " + key.to_string() + " has ended");
    if (shown.ok() && shown->until - now < act::kCertificateLife / 4 && secret.text(api::kNextCertificateEntry).empty())
      violated("the certificate of " + key.to_string() + " is not renewed");
  }
}

void Oracle::check_waiting(kube::fake::ApiServer& server) {
  for (const auto& [key, object] : server.all(kube::kPods))
    if (const Pod pod(*object); pod.is_worker() && pod.serves() && pod.node().empty())
      violated("worker " + key.to_string() + " waits for a node that has room for it");
}

void Oracle::check_orphans(kube::fake::ApiServer& server) {
  std::set<std::string> uids;
  const kube::Resource kinds[] = {kube::kTrainingJobs,  kube::kDataWorkerPools, kube::kJobs,
                                  kube::kServices,      kube::kSecrets,         kube::kPods,
                                  api::kNetworkPolicies};
  for (const kube::Resource& kind : kinds)
    for (const auto& [key, object] : server.all(kind)) uids.insert(Object(*object).uid());
  for (const kube::Resource& kind : kinds)
    for (const auto& [key, object] : server.all(kind))
      if (const std::string owner = Object(*object).controller_uid();
          kind != kube::kTrainingJobs && !is_a_persons(kind, owner) && !uids.contains(owner))
        violated(std::string(kind.kind) + " " + key.to_string() + " is left without an owner");
}

void Oracle::check_feeders(kube::fake::ApiServer& server, const decide::Round& last) {
  constexpr double kTolerated = 0.25;  // two dead bands: one that was left, and one that the plan moved since
  for (const auto& [key, object] : server.all(kube::kPods)) {
    const auto feeder = api::view_feeder(*object);
    if (feeder && Pod(*object).serves() && feeder->resize != api::FeederView::Resize::kDone)
      violated("a resize of " + key.to_string() + " waits");
  }
  for (const auto& [job, decision] : last.jobs)
    for (const scheduler::LocalCpu& local : decision->plan.local) {
      std::int64_t held = 0;
      for (const auto& [key, object] : server.all(kube::kPods)) {
        const Pod pod(*object);
        const auto feeder = api::view_feeder(*object);
        if (feeder && pod.serves() && pod.job() == job.name && pod.node() == local.node)
          held += feeder->in_force.request_millicores;
      }
      const auto wanted = static_cast<double>(local.request_millicores);
      if (std::abs(static_cast<double>(held) - wanted) > std::max(100.0, kTolerated * wanted))
        violated("the feeders of " + job.to_string() + " on " + local.node + " have " + std::to_string(held) + "m of " +
                 std::to_string(local.request_millicores) + "m");
    }
}

bool is_told(kube::fake::ApiServer& server, const kube::ObjectKey& key) {
  const auto stored = server.get(kube::kTrainingJobs, key);
  if (!stored) return true;  // by whom refused it
  const auto says_why = [](const Object& object) {
    const auto ready = api::find_condition(object.conditions(), "Ready");
    return ready.reason == api::kSpecRefused && ready.message.find("spec") != std::string::npos;
  };
  const TrainingJob job(*stored);
  if (observed_generation(job) != job.generation()) return false;
  if (says_why(job)) return true;
  const auto pool_stored = server.get(kube::kDataWorkerPools, key);
  if (!server.get(kube::kJobs, key) || !pool_stored) return false;
  const DataWorkerPool pool(*pool_stored);
  if (observed_generation(pool) != pool.generation()) return false;
  return says_why(pool) || member(pool.status(), "replicas") == pool.replicas();
}

Json final_state(kube::fake::ApiServer& server) {
  Json state = Json::object();
  for (const kube::Resource& kind : {kube::kServices, kube::kSecrets, api::kNetworkPolicies, kube::kJobs})
    for (const auto& [key, object] : server.all(kind)) {
      const bool is_for_workers = kind == kube::kServices || kind == api::kNetworkPolicies;
      if (is_for_workers && is_of_finished_job(server, *object)) continue;
      Json kept = without_history(*object);
      if (kind == kube::kJobs) {
        // Carries the Job's own uid in labels.
        kept["spec"].erase("selector");
        kept["spec"]["template"]["metadata"].erase("labels");
        kept["ready"] = api::TrainerJob(*object).ready();
        forget_bundle_image(kept["spec"]["template"]["spec"]);
      }
      state[std::string(kind.kind) + " " + key.to_string()] = std::move(kept);
    }
  for (const auto& [key, object] : server.all(kube::kDataWorkerPools)) {
    const DataWorkerPool pool(*object);
    Json kept = without_history(*object);
    // The CPU of workers that Sluice sizes is what their nodes had free when the first of them was made.
    for (Json& resources : kept["spec"]["workerResources"]) resources.erase("cpu");
    // The pool of a job that is over stays as the release that led then wrote it.
    if (is_of_finished_job(server, *object)) {
      kept["spec"].erase("template");
      kept["metadata"]["annotations"].erase(std::string(api::kAppliedTemplateAnnotation));
    }
    kept["status"] = {{"replicas", member(pool.status(), "replicas")},
                      {"ready", pool.ready_replicas()},
                      {"current", observed_generation(pool) == pool.generation()},
                      {"conditions", summary_of_conditions(pool)}};
    state["DataWorkerPool " + key.to_string()] = std::move(kept);
  }
  for (const auto& [key, object] : server.all(kube::kTrainingJobs)) {
    const TrainingJob job(*object);
    Json kept = without_history(*object);
    kept["status"] = {{"workers", member(job.status(), "workers")},
                      {"current", observed_generation(job) == job.generation()},
                      {"conditions", summary_of_conditions(job)}};
    // What was measured last of a job that is over depends on when.
    if (!job.succeeded()) kept["bottleneck"] = member(job.status(), "bottleneck");
    state["TrainingJob " + key.to_string()] = std::move(kept);
  }
  for (const auto& [key, object] : server.all(kube::kPods)) {
    const Pod pod(*object);
    const std::string version = !pod.is_worker() ? "" : is_current(server, pod) ? "current " : "outdated ";
    const std::string what =
        "pods of " + pod.job() + ": " + version + pod.label(api::kComponentLabel) + " " + pod.phase();
    state[what] = state.value(what, 0) + 1;
  }
  return state;
}

}  // namespace sluice::simulation
