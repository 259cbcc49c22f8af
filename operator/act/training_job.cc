#include "operator/act/training_job.h"

#include <nlohmann/json.hpp>

#include "operator/act/certificate_rotation.h"
#include "operator/act/fitted_resources.h"
#include "operator/act/objects.h"
#include "operator/act/rendezvous.h"
#include "operator/act/trainer_pod.h"
#include "operator/act/worker_network_policy.h"
#include "operator/act/worker_pod.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/fingerprint.h"
#include "operator/api/gang_restart.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/network_policy.h"
#include "operator/api/tls_secret.h"
#include "operator/api/trainer_job.h"
#include "operator/api/training_job.h"
#include "operator/decide/orders.h"

namespace sluice::act {

using namespace api;
using control::Config;
using nlohmann::json;

namespace {

json job_child_metadata(const TrainingJob& training_job, const std::string& name, std::string_view component) {
  return child_metadata(training_job, kApiVersion, kTrainingJobKind, name, training_job.name(), component);
}

kube::Action write(kube::Verb verb, const kube::Resource& resource, json body) {
  kube::Action action{verb, resource, kube::key_of(body), json(), std::string(kOperatorManager)};
  body["apiVersion"] = resource.api_version();
  body["kind"] = resource.kind;
  action.body = std::move(body);
  return action;
}

kube::Action write_again(const json& existing, const kube::Resource& resource, json body) {
  kube::Action action = write(kube::Verb::kApply, resource, std::move(body));
  action.uid = Object(existing).uid();
  return action;
}

// An existing child must be this TrainingJob's own. A namesake's (deleted a moment ago, not collected yet) or a
// stranger's is waited for, not taken over.
Result<void> check_owner(const TrainingJob& training_job, const kube::ObjectPointer& child, std::string_view kind) {
  if (!child || Object(*child).controlled_by(training_job)) return {};
  return Error(ErrorCode::kAlreadyExists,
               std::string(kind) + " " + Object(*child).name() +
                   " exists and belongs to another owner; delete it or rename the TrainingJob");
}

TlsEntries entries_of(const TlsSecret& secret) {
  return {secret.text(kAuthoritiesEntry), secret.text(kCertificateEntry), secret.text(kPrivateKeyEntry),
          secret.text(kNextCertificateEntry), secret.text(kNextPrivateKeyEntry)};
}

// Entries without text are taken out. A Secret that is immutable, as earlier versions made them for ten years, stays.
Result<std::optional<kube::Action>> rotation_action(const TrainingJobWorld& world, const std::string& job,
                                                    const IdentitySource& make_identity) {
  const TlsSecret secret(*world.secret);
  if (secret.immutable() || world.now < world.secret_rotates_at) return std::optional<kube::Action>();
  SLUICE_TRY(const auto entries, rotate(entries_of(secret), job, world.now, make_identity));
  if (!entries) return std::optional<kube::Action>();
  json body = json::object();
  const std::pair<std::string_view, const std::string*> texts[] = {{kAuthoritiesEntry, &entries->authorities},
                                                                   {kCertificateEntry, &entries->certificate},
                                                                   {kPrivateKeyEntry, &entries->private_key},
                                                                   {kNextCertificateEntry, &entries->next_certificate},
                                                                   {kNextPrivateKeyEntry, &entries->next_private_key}};
  for (const auto& [entry, text] : texts)
    text->empty() ? body["data"][std::string(entry)] = nullptr : body["stringData"][std::string(entry)] = *text;
  kube::Action action{kube::Verb::kMergePatch, kube::kSecrets, secret.key(), std::move(body),
                      std::string(kOperatorManager)};
  action.uid = secret.uid();
  action.version = secret.resource_version();
  return std::optional(std::move(action));
}

Result<std::optional<kube::Action>> secret_action(const TrainingJobWorld& world, const IdentitySource& make_identity) {
  const TrainingJob training_job(*world.training_job);
  const std::string job = training_job.name();
  if (world.secret) return rotation_action(world, job, make_identity);
  json body = {{"metadata", job_child_metadata(training_job, secret_name(job), kTrainerComponent)},
               {"type", kTlsSecretType}};
  if (world.lost_secret) {
    body["data"] = member(*world.lost_secret, "data");
    return std::optional(write(kube::Verb::kCreate, kube::kSecrets, std::move(body)));
  }
  SLUICE_TRY(const TlsIdentity identity, make_identity(job));
  body["stringData"] = {{std::string(kAuthoritiesEntry), identity.authority_certificate},
                        {std::string(kCertificateEntry), identity.certificate},
                        {std::string(kPrivateKeyEntry), identity.private_key}};
  return std::optional(write(kube::Verb::kCreate, kube::kSecrets, std::move(body)));
}

// Fields that are at their defaults are left out: the API server drops some, and they would never compare equal.
json workers_service_spec(const std::string& job) {
  return {{"clusterIP", "None"},
          {"selector", {{std::string(kJobLabel), job}, {std::string(kComponentLabel), kWorkerComponent}}},
          {"ports",
           {{{"name", "grpc"}, {"port", kWorkerPort}, {"targetPort", "grpc"}, {"protocol", "TCP"}},
            {{"name", "metrics"}, {"port", kMetricsPort}, {"targetPort", "metrics"}, {"protocol", "TCP"}}}}};
}

std::optional<kube::Action> service_action(const kube::ObjectPointer& service, json metadata, json spec) {
  json body = {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  // Created, not applied: a stranger's Service of this name, which we do not watch, must not be taken over.
  if (!service) return write(kube::Verb::kCreate, kube::kServices, std::move(body));
  if (holds(*service, body)) return std::nullopt;
  return write_again(*service, kube::kServices, std::move(body));
}

std::optional<kube::Action> network_policy_action(const TrainingJobWorld& world, bool wanted) {
  if (!wanted) {
    if (!world.network_policy) return std::nullopt;
    kube::Action action{kube::Verb::kDelete, kNetworkPolicies, kube::key_of(*world.network_policy), json(), ""};
    action.uid = Object(*world.network_policy).uid();
    return action;
  }
  const TrainingJob training_job(*world.training_job);
  json body = {
      {"metadata", job_child_metadata(training_job, network_policy_name(training_job.name()), kWorkerComponent)},
      {"spec", worker_network_policy_spec(training_job, world.job ? *world.job : json())}};
  if (!world.network_policy) return write(kube::Verb::kCreate, kNetworkPolicies, std::move(body));
  if (holds(*world.network_policy, body)) return std::nullopt;
  return write_again(*world.network_policy, kNetworkPolicies, std::move(body));
}

std::optional<kube::Action> pool_action(const TrainingJobWorld& world, const Config& config) {
  const TrainingJob training_job(*world.training_job);
  const std::string job = training_job.name();
  // spec.replicas is absent on purpose: it belongs to the scheduler, or in mode Recommend to the pool's own autoscaler.
  json pod_template = worker_pod_template(training_job, config);
  json metadata = job_child_metadata(training_job, job, kWorkerComponent);
  // A comparison finds what the template says and the pool does not. What was taken out of the spec is found by this.
  metadata["annotations"][std::string(kAppliedTemplateAnnotation)] = api::fingerprint(pod_template);
  json body = {{"metadata", std::move(metadata)}, {"spec", {{"jobName", job}, {"template", std::move(pod_template)}}}};
  if (!world.pool) return write(kube::Verb::kApply, kube::kDataWorkerPools, std::move(body));
  if (holds(*world.pool, body)) return std::nullopt;
  return write_again(*world.pool, kube::kDataWorkerPools, std::move(body));
}

Result<json> new_job(const TrainingJobWorld& world, const TrainingJobView& view, const Config& config) {
  json object = *world.training_job;
  if (const json& feeder = TrainingJob(*world.training_job).feeder_resources(); feeder.is_object())
    object["spec"]["feeder"]["resources"] = fitted_feeder(feeder, ContainerBounds(world.limit_ranges));
  const TrainingJob training_job(object);
  const bool with_feeder = view.mode != Mode::kOff;
  const FeederRole role = !with_feeder                           ? FeederRole::kNone
                          : view.placement == Placement::kRemote ? FeederRole::kBridges
                                                                 : FeederRole::kMakesBatches;
  SLUICE_TRY(json pod_template, trainer_pod_template(training_job, role, config, world.held_host_ports));
  json metadata = job_child_metadata(training_job, view.name, kTrainerComponent);
  metadata["annotations"][std::string(kFeederAnnotation)] = with_feeder ? "true" : "false";
  metadata["annotations"][std::string(kSuspendAnnotation)] = view.suspend ? "true" : "false";
  if (view.restarts > 0) metadata["annotations"][std::string(kRestartsAnnotation)] = std::to_string(view.restarts);
  for (const std::string_view label : kQueueLabels)
    if (const std::string queue = training_job.label(label); !queue.empty())
      metadata["labels"][std::string(label)] = queue;
  json spec = {{"completionMode", "Indexed"},
               {"completions", view.trainer_replicas},
               {"parallelism", view.trainer_replicas},
               {"suspend", view.suspend},
               {"template", std::move(pod_template)}};
  for (const char* name : {"backoffLimit", "activeDeadlineSeconds", "podFailurePolicy", "successPolicy"})
    if (const json& value = training_job.trainer_job_field(name); !value.is_null()) spec[name] = value;
  if (view.is_gang) spec["backoffLimit"] = 0;  // retries are of the whole gang, each with a Job of its own
  return json{{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
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

// Told to the Job when its end is in the TrainingJob's status: a Job that went earlier would be made again.
std::optional<kube::Action> clean_up_action(const TrainingJobWorld& world) {
  const json& ttl_seconds = TrainingJob(*world.training_job).trainer_job_field("ttlSecondsAfterFinished");
  if (!world.job || ttl_seconds.is_null()) return std::nullopt;
  const TrainerJob job(*world.job);
  if (!job.over() || job.removed_when_over()) return std::nullopt;
  kube::Action action{kube::Verb::kMergePatch,
                      kube::kJobs,
                      job.key(),
                      {{"spec", {{"ttlSecondsAfterFinished", ttl_seconds}}}},
                      std::string(kOperatorManager)};
  action.uid = job.uid();
  return action;
}

// A Job's template cannot change, so it is created once; afterwards only changes of spec.suspend follow. A queue such
// as Kueue suspends and resumes the Job, too: what it sets stays until the TrainingJob asks for something else.
Result<std::optional<kube::Action>> job_action(const TrainingJobWorld& world, const TrainingJobView& view,
                                               const Config& config) {
  if (!world.job) {
    SLUICE_TRY(json body, new_job(world, view, config));
    return std::optional(write(kube::Verb::kCreate, kube::kJobs, std::move(body)));
  }
  const TrainerJob job(*world.job);
  if (will_restart(view, job)) return restart_action(world, job, view);
  if (job.over() || job.asked_to_suspend().value_or(job.suspended()) == view.suspend)
    return std::optional<kube::Action>();
  kube::Action action{
      kube::Verb::kMergePatch,
      kube::kJobs,
      job.key(),
      {{"metadata", {{"annotations", {{std::string(kSuspendAnnotation), view.suspend ? "true" : "false"}}}}},
       {"spec", {{"suspend", view.suspend}}}},
      std::string(kOperatorManager)};
  action.uid = job.uid();
  return std::optional(std::move(action));
}

}  // namespace

std::chrono::system_clock::time_point secret_rotates_at(const kube::Json& secret) {
  return rotates_at(entries_of(TlsSecret(secret)));
}

std::optional<std::chrono::milliseconds> restart_wait(const TrainingJobWorld& world) {
  const auto view = view_training_job(*world.training_job);
  if (!view.ok() || view->deleting || !world.job) return std::nullopt;
  const TrainerJob job(*world.job);
  if (job.deleting() || !will_restart(*view, job)) return std::nullopt;
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

  // 1. Objects of other owners are not touched.
  SLUICE_TRY_VOID(check_owner(training_job, world.job, "Job"));
  SLUICE_TRY_VOID(check_owner(training_job, world.service, "Service"));
  SLUICE_TRY_VOID(check_owner(training_job, world.trainers_service, "Service"));
  SLUICE_TRY_VOID(check_owner(training_job, world.secret, "Secret"));
  SLUICE_TRY_VOID(check_owner(training_job, world.pool, "DataWorkerPool"));
  SLUICE_TRY_VOID(check_owner(training_job, world.network_policy, "NetworkPolicy"));

  // 2. No worker without a trainer that may use it, whatever the number says.
  const bool job_over = world.job && TrainerJob(*world.job).over() && !will_restart(view, TrainerJob(*world.job));
  const bool workers_allowed = view.may_have_workers() && !job_over;
  if (world.pool && !workers_allowed && DataWorkerPool(*world.pool).replicas() != 0)
    actions.push_back(decide::scale_pool(*world.pool, 0));
  if (view.finished)
    if (auto clean_up = clean_up_action(world)) actions.push_back(std::move(*clean_up));
  if (view.finished || job_over) return actions;

  // 3. What the pods need, before the pods. Plain PyTorch (mode Off from the start) needs none of it.
  const bool with_feeder = world.job ? TrainerJob(*world.job).has_feeder().value_or(false) : view.mode != Mode::kOff;
  if (with_feeder) {
    SLUICE_TRY(auto secret, secret_action(world, make_identity));
    if (secret) actions.push_back(std::move(*secret));
    auto service =
        service_action(world.service, job_child_metadata(training_job, service_name(view.name), kWorkerComponent),
                       workers_service_spec(view.name));
    if (service) actions.push_back(std::move(*service));
    if (auto pool = pool_action(world, config)) actions.push_back(std::move(*pool));
  }

  // 4. The trainer, and before it the names by which its pods find each other.
  if (view.trainer_replicas > 1) {
    auto service = service_action(world.trainers_service,
                                  job_child_metadata(training_job, trainers_service_name(view.name), kTrainerComponent),
                                  trainers_service_spec(training_job));
    if (service) actions.push_back(std::move(*service));
  }
  SLUICE_TRY(auto job, job_action(world, view, config));
  if (job) actions.push_back(std::move(*job));

  // 5. What is not needed to train.
  if (auto policy = network_policy_action(world, with_feeder && config.guard_workers))
    actions.push_back(std::move(*policy));
  return actions;
}

}  // namespace sluice::act
