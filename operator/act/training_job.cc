#include "operator/act/training_job.h"

#include <nlohmann/json.hpp>

#include "operator/act/certificate_rotation.h"
#include "operator/act/child_owner.h"
#include "operator/act/fitted_resources.h"
#include "operator/act/node_cache_parts.h"
#include "operator/act/objects.h"
#include "operator/act/rendezvous.h"
#include "operator/act/trainer_pod.h"
#include "operator/act/worker_network_policy.h"
#include "operator/act/worker_pod.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/gang_restart.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/network_policy.h"
#include "operator/api/platform.h"
#include "operator/api/pod.h"
#include "operator/api/service_draft.h"
#include "operator/api/tls_secret.h"
#include "operator/api/trainer_job.h"
#include "operator/api/training_job.h"
#include "operator/decide/orders.h"

namespace sluice::act {

using namespace api;
using control::Config;
using nlohmann::json;

namespace {

// Every child has the labels of its job, and goes when the job goes.
template <class Draft>
Draft child_of(const TrainingJob& training_job, Draft draft, std::string_view component) {
  draft.metadata().set_sluice_labels(training_job.name(), component);
  draft.metadata().set_controller(training_job, kube::kTrainingJobs);
  return draft;
}

kube::Action write(kube::Verb verb, const ObjectDraft& draft) {
  return {verb, draft.resource(), draft.key(), draft.complete(), std::string(kOperatorManager)};
}

// None if the object that is `seen` says all of the draft. An object that is not seen is created, not applied: a
// stranger's of this name, which we do not watch, must not be taken over.
std::optional<kube::Action> write_child(const kube::ObjectPointer& seen, const ObjectDraft& draft,
                                        kube::Verb first = kube::Verb::kCreate) {
  if (!seen) return write(first, draft);
  if (holds(*seen, draft.body())) return std::nullopt;
  kube::Action action = write(kube::Verb::kApply, draft);
  action.uid = Object(*seen).uid();
  return action;
}

Result<void> check_owners(const TrainingJobWorld& world) {
  const std::pair<std::string_view, const kube::ObjectPointer*> children[] = {
      {"Job", &world.job},       {"Service", &world.service},     {"Service", &world.trainers_service},
      {"Secret", &world.secret}, {"DataWorkerPool", &world.pool}, {"NetworkPolicy", &world.network_policy}};
  for (const auto& [kind, child] : children)
    if (*child) SLUICE_TRY_VOID(check_owner(*world.training_job, **child, kind));
  return {};
}

// A Secret that is immutable, as earlier versions made them for ten years, stays.
Result<std::optional<kube::Action>> rotation_action(const TrainingJobWorld& world, const std::string& job,
                                                    const IdentitySource& make_identity) {
  const TlsSecret secret(*world.secret);
  if (secret.immutable()) return std::optional<kube::Action>();
  json patch = json::object();
  if (world.now >= world.secret_rotates_at) {
    SLUICE_TRY(const auto entries, rotate(secret.entries(), job, world.now, make_identity));
    if (entries) patch = patch_of(*entries);
  }
  if (!world.cache_authorities.empty() && secret.text(kCacheAuthoritiesEntry) != world.cache_authorities)
    patch.merge_patch(patch_of_cache_authorities(world.cache_authorities));
  if (patch.empty()) return std::optional<kube::Action>();
  kube::Action action{kube::Verb::kMergePatch, kube::kSecrets, secret.key(), std::move(patch),
                      std::string(kOperatorManager)};
  action.uid = secret.uid();
  action.version = secret.resource_version();
  return std::optional(std::move(action));
}

Result<std::optional<kube::Action>> secret_action(const TrainingJobWorld& world, const IdentitySource& make_identity) {
  const TrainingJob training_job(*world.training_job);
  const std::string job = training_job.name();
  if (world.secret) return rotation_action(world, job, make_identity);
  TlsSecretDraft secret =
      child_of(training_job, TlsSecretDraft(training_job.name_space(), secret_name(job)), kTrainerComponent);
  if (world.lost_secret) {
    secret.restore_entries(TlsSecret(*world.lost_secret));
  } else {
    SLUICE_TRY(const TlsIdentity identity, make_identity(job));
    secret.set_entries({identity.authority_certificate, identity.certificate, identity.private_key, "", ""});
    if (!world.cache_authorities.empty()) secret.set_cache_authorities(world.cache_authorities);
  }
  return std::optional(write(kube::Verb::kCreate, secret));
}

ServiceDraft workers_service(const TrainingJob& training_job) {
  const std::string job = training_job.name();
  ServiceDraft service(training_job.name_space(), service_name(job));
  service.select_pods_of(job, kWorkerComponent);
  service.add_port("grpc", kWorkerPort, "grpc");
  service.add_port("metrics", kMetricsPort, "metrics");
  return service;
}

std::optional<kube::Action> network_policy_action(const TrainingJobWorld& world, bool wanted) {
  if (!wanted) {
    // Whether there are workers, the Job tells. It may just not be seen yet.
    if (!world.network_policy || !world.job) return std::nullopt;
    kube::Action action{kube::Verb::kDelete, kNetworkPolicies, kube::key_of(*world.network_policy), json(), ""};
    action.uid = Object(*world.network_policy).uid();
    return action;
  }
  const TrainingJob training_job(*world.training_job);
  const json none;
  return write_child(
      world.network_policy,
      child_of(training_job, worker_network_policy(training_job, world.job ? *world.job : none), kWorkerComponent));
}

std::optional<kube::Action> pool_action(const TrainingJobWorld& world, const Config& config) {
  const TrainingJob training_job(*world.training_job);
  DataWorkerPoolDraft pool =
      child_of(training_job, DataWorkerPoolDraft(training_job.name_space(), training_job.name()), kWorkerComponent);
  pool.set_worker_template(with_node_cache(worker_pod_template(training_job, config), kWorkerContainer,
                                           training_job.name(), world.claims, config.node_cache));
  return write_child(world.pool, pool, kube::Verb::kApply);
}

Result<TrainerJobDraft> new_job(const TrainingJobWorld& world, const TrainingJobView& view, const Config& config) {
  const TrainingJob written(*world.training_job);
  const json object =
      written.feeder_resources().is_object()
          ? with_feeder_resources(*world.training_job, fitted_feeder(written, ContainerBounds(world.limit_ranges)))
          : *world.training_job;
  const TrainingJob training_job(object);
  const bool with_feeder = view.mode != Mode::kOff;
  const FeederRole role = !with_feeder                           ? FeederRole::kNone
                          : view.placement == Placement::kRemote ? FeederRole::kBridges
                                                                 : FeederRole::kMakesBatches;
  SLUICE_TRY(json pod_template, trainer_pod_template(training_job, role, config, world.held_host_ports));
  pod_template = with_node_cache(std::move(pod_template), kFeederContainer, view.name, world.claims, config.node_cache);
  TrainerJobDraft job = child_of(training_job, TrainerJobDraft(view.name_space, view.name), kTrainerComponent);
  job.set_pods(view.trainer_replicas, std::move(pod_template));
  job.set_feeder(with_feeder);
  job.set_suspended(view.suspend);
  job.take_over(training_job);
  if (view.restarts > 0) job.set_restarts(view.restarts);
  if (view.is_gang) job.never_retry();  // retries are of the whole gang, each with a Job of its own
  return job;
}

// The next Job has the same name, so this one goes first, and all its pods before it: no pod of the next one meets a
// pod of this one. The restart is counted in the status before, so it cannot happen twice for one failure.
std::optional<kube::Action> restart_action(const TrainingJobWorld& world, const TrainerJob& job,
                                           const TrainingJobView& view) {
  if (job.deleting() || view.restarts <= job.restarts() || restart_wait(world)) return std::nullopt;
  kube::Action action{kube::Verb::kDelete, kube::kJobs, job.key(), json(), ""};
  action.uid = job.uid();
  action.propagation = kube::Propagation::kForeground;
  return action;
}

// The Job gets its time to live only when the TrainingJob's status tells of its end. A Job that went earlier would be
// made again.
std::optional<kube::Action> clean_up_action(const TrainingJobWorld& world) {
  const json& stays_seconds = TrainingJob(*world.training_job).seconds_from_end_to_removal();
  if (!world.job || stays_seconds.is_null()) return std::nullopt;
  const TrainerJob job(*world.job);
  if (!job.over() || job.removed_when_over()) return std::nullopt;
  kube::Action action{kube::Verb::kMergePatch, kube::kJobs, job.key(), removal_patch(stays_seconds),
                      std::string(kOperatorManager)};
  action.uid = job.uid();
  return action;
}

// A Job's template cannot change, so it is created once; afterwards only changes of spec.suspend follow. A queue such
// as Kueue suspends and resumes the Job, too: what it sets stays until the TrainingJob asks for something else.
Result<std::optional<kube::Action>> job_action(const TrainingJobWorld& world, const TrainingJobView& view,
                                               const Config& config) {
  if (!world.job) {
    if (!left_trainer_pod(world).empty()) return std::optional<kube::Action>();
    SLUICE_TRY(const auto draft, new_job(world, view, config));
    return std::optional(write(kube::Verb::kCreate, draft));
  }
  const TrainerJob job(*world.job);
  if (will_restart(view, job)) return restart_action(world, job, view);
  if (job.over() || job.asked_to_suspend().value_or(job.suspended()) == view.suspend)
    return std::optional<kube::Action>();
  kube::Action action{kube::Verb::kMergePatch, kube::kJobs, job.key(), suspension_patch(view.suspend),
                      std::string(kOperatorManager)};
  action.uid = job.uid();
  return std::optional(std::move(action));
}

}  // namespace

std::chrono::system_clock::time_point secret_rotates_at(const kube::Json& secret) {
  return rotates_at(TlsSecret(secret).entries());
}

std::string left_trainer_pod(const TrainingJobWorld& world) {
  if (world.job) return "";
  for (const kube::ObjectPointer& object : world.trainer_pods)
    if (const Pod pod(*object); pod.serves()) return pod.name();
  return "";
}

std::optional<std::chrono::milliseconds> restart_wait(const TrainingJobWorld& world) {
  if (!world.job) return std::nullopt;
  const TrainerJob job(*world.job);
  if (job.deleting() || !job.failed_by_pods()) return std::nullopt;
  const auto view = view_training_job(*world.training_job);
  if (!view.ok() || view->deleting || !will_restart(*view, job)) return std::nullopt;
  const auto left = std::chrono::duration<double>(restart_pause_seconds(job)) - world.job_failed_for;
  if (left.count() <= 0) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(left);
}

Result<std::vector<kube::Action>> reconcile_children(const TrainingJobWorld& world, const Config& configured,
                                                     const IdentitySource& make_identity) {
  std::optional<Config> fitted;
  if (!world.limit_ranges.empty()) {
    fitted = configured;
    fitted->bundle = fitted_bundle(configured.bundle, ContainerBounds(world.limit_ranges));
  }
  const Config& config = fitted ? *fitted : configured;
  const TrainingJob training_job(*world.training_job);
  SLUICE_TRY(TrainingJobView view, view_training_job(*world.training_job));
  if (!world.unshared_data.empty()) view.keep_local();
  std::vector<kube::Action> actions;
  if (view.deleting) return actions;  // the garbage collector takes the children
  SLUICE_TRY_VOID(check_platform(training_job, config.architectures));

  // 1. Objects of other owners are not touched.
  SLUICE_TRY_VOID(check_owners(world));

  // 2. No worker without a trainer that may use it, whatever the number says.
  const bool job_over = world.job && TrainerJob(*world.job).over() && !will_restart(view, TrainerJob(*world.job));
  const bool workers_allowed = view.may_have_workers() && !job_over;
  if (world.pool && !workers_allowed && DataWorkerPool(*world.pool).replicas() != 0)
    actions.push_back(decide::scale_pool(*world.pool, 0));
  if (view.finished)
    if (auto clean_up = clean_up_action(world)) actions.push_back(std::move(*clean_up));
  if (view.finished || job_over) return actions;

  // 3. The objects that pods need come before the pods. Plain PyTorch (mode Off from the start) needs none of them.
  const bool with_feeder = world.job ? TrainerJob(*world.job).has_feeder().value_or(false) : view.mode != Mode::kOff;
  if (with_feeder) {
    SLUICE_TRY(auto secret, secret_action(world, make_identity));
    if (secret) actions.push_back(std::move(*secret));
    const ServiceDraft service = child_of(training_job, workers_service(training_job), kWorkerComponent);
    if (auto action = write_child(world.service, service)) actions.push_back(std::move(*action));
    if (auto pool = pool_action(world, config)) actions.push_back(std::move(*pool));
  }

  // 4. The trainer, and before it the names by which its pods find each other.
  if (view.trainer_replicas > 1) {
    const ServiceDraft service = child_of(training_job, trainers_service(training_job), kTrainerComponent);
    if (auto action = write_child(world.trainers_service, service)) actions.push_back(std::move(*action));
  }
  SLUICE_TRY(auto job, job_action(world, view, config));
  if (job) actions.push_back(std::move(*job));

  // 5. The NetworkPolicy, which no trainer needs.
  if (auto policy = network_policy_action(world, with_feeder && config.guard_workers))
    actions.push_back(std::move(*policy));
  return actions;
}

}  // namespace sluice::act
