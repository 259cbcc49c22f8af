#include "operator/act/training_job.h"

#include <nlohmann/json.hpp>

#include "operator/act/objects.h"
#include "operator/act/trainer_pod.h"
#include "operator/act/worker_pod.h"
#include "operator/decide/orders.h"
#include "operator/names.h"
#include "operator/observe/fields.h"
#include "operator/observe/training_job_view.h"

namespace sluice::act {

using namespace control;
using nlohmann::json;
using observe::text_field;
using observe::TrainingJobView;

namespace {

json job_child_metadata(const json& training_job, const std::string& name, std::string_view component) {
  return child_metadata(training_job, kApiVersion, kTrainingJobKind, name, text_field(training_job, "/metadata/name"),
                        component);
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
  action.uid = text_field(existing, "/metadata/uid");
  return action;
}

// An existing child must be this TrainingJob's own. A namesake's (deleted a moment ago, not collected yet) or a
// stranger's is waited for, not taken over.
Result<void> check_owner(const json& training_job, const kube::ObjectPointer& child, std::string_view kind) {
  if (!child || observe::controlled_by(*child, training_job)) return {};
  return Error(ErrorCode::kAlreadyExists,
               std::string(kind) + " " + text_field(*child, "/metadata/name") +
                   " exists and belongs to another owner; delete it or rename the TrainingJob");
}

Result<std::optional<kube::Action>> secret_action(const TrainingJobWorld& world, const IdentitySource& make_identity) {
  if (world.secret) return std::optional<kube::Action>();  // made once, never rotated
  const json& training_job = *world.training_job;
  const std::string job = text_field(training_job, "/metadata/name");
  SLUICE_TRY(const TlsIdentity identity, make_identity(job));
  json body = {{"metadata", job_child_metadata(training_job, secret_name(job), kTrainerComponent)},
               {"type", "kubernetes.io/tls"},
               {"immutable", true},
               {"stringData",
                {{"ca.crt", identity.authority_certificate},
                 {"tls.crt", identity.certificate},
                 {"tls.key", identity.private_key}}}};
  return std::optional(write(kube::Verb::kCreate, kube::kSecrets, std::move(body)));
}

std::optional<kube::Action> service_action(const TrainingJobWorld& world) {
  const json& training_job = *world.training_job;
  const std::string job = text_field(training_job, "/metadata/name");
  json body = {{"metadata", job_child_metadata(training_job, service_name(job), kWorkerComponent)},
               {"spec",
                {{"clusterIP", "None"},
                 {"selector", {{std::string(kJobLabel), job}, {std::string(kComponentLabel), kWorkerComponent}}},
                 {"ports",
                  {{{"name", "grpc"}, {"port", kWorkerPort}, {"targetPort", "grpc"}, {"protocol", "TCP"}},
                   {{"name", "metrics"}, {"port", kMetricsPort}, {"targetPort", "metrics"}, {"protocol", "TCP"}}}}}}};
  // Fields that are at their defaults are left out: the API server drops some, and they would never compare equal.
  // Created, not applied: a stranger's Service of this name, which we do not watch, must not be taken over.
  if (!world.service) return write(kube::Verb::kCreate, kube::kServices, std::move(body));
  if (holds(*world.service, body)) return std::nullopt;
  return write_again(*world.service, kube::kServices, std::move(body));
}

std::optional<kube::Action> pool_action(const TrainingJobWorld& world, const Config& config) {
  const json& training_job = *world.training_job;
  const std::string job = text_field(training_job, "/metadata/name");
  // spec.replicas is absent on purpose: it belongs to the scheduler, or to whoever scales the pool in mode Recommend.
  json pod_template = worker_pod_template(training_job, config);
  json metadata = job_child_metadata(training_job, job, kWorkerComponent);
  // A comparison finds what the template says and the pool does not. What was taken out of the spec is found by this.
  metadata["annotations"][std::string(kAppliedTemplateAnnotation)] = template_hash(pod_template);
  json body = {{"metadata", std::move(metadata)}, {"spec", {{"jobName", job}, {"template", std::move(pod_template)}}}};
  if (!world.pool) return write(kube::Verb::kApply, kube::kDataWorkerPools, std::move(body));
  if (holds(*world.pool, body)) return std::nullopt;
  return write_again(*world.pool, kube::kDataWorkerPools, std::move(body));
}

Result<json> new_job(const json& training_job, const TrainingJobView& view, const Config& config) {
  const bool with_feeder = view.mode != observe::Mode::kOff;
  SLUICE_TRY(json pod_template, trainer_pod_template(training_job, with_feeder, config));
  json metadata = job_child_metadata(training_job, view.name, kTrainerComponent);
  metadata["annotations"][std::string(kFeederAnnotation)] = with_feeder ? "true" : "false";
  return json{{"metadata", std::move(metadata)},
              {"spec",
               {{"completionMode", "Indexed"},
                {"completions", view.trainer_replicas},
                {"parallelism", view.trainer_replicas},
                {"suspend", view.suspend},
                {"template", std::move(pod_template)}}}};
}

// A Job's template cannot change, so it is created once; afterwards only spec.suspend follows.
Result<std::optional<kube::Action>> job_action(const TrainingJobWorld& world, const TrainingJobView& view,
                                               const Config& config) {
  if (!world.job) {
    SLUICE_TRY(json body, new_job(*world.training_job, view, config));
    return std::optional(write(kube::Verb::kCreate, kube::kJobs, std::move(body)));
  }
  const json& job = *world.job;
  const bool over = observe::condition_is_true(job, "Complete") || observe::condition_is_true(job, "Failed");
  if (over || observe::boolean_field(job, "/spec/suspend") == view.suspend) return std::optional<kube::Action>();
  kube::Action action{kube::Verb::kMergePatch,
                      kube::kJobs,
                      kube::key_of(job),
                      {{"spec", {{"suspend", view.suspend}}}},
                      std::string(kOperatorManager)};
  action.uid = text_field(job, "/metadata/uid");
  return std::optional(std::move(action));
}

}  // namespace

Result<std::vector<kube::Action>> reconcile_children(const TrainingJobWorld& world, const Config& config,
                                                     const IdentitySource& make_identity) {
  const json& training_job = *world.training_job;
  SLUICE_TRY(const TrainingJobView view, observe::view_training_job(training_job));
  std::vector<kube::Action> actions;
  if (view.deleting) return actions;  // the garbage collector takes the children

  // 1. Nothing of somebody else's is touched.
  SLUICE_TRY_VOID(check_owner(training_job, world.job, "Job"));
  SLUICE_TRY_VOID(check_owner(training_job, world.service, "Service"));
  SLUICE_TRY_VOID(check_owner(training_job, world.secret, "Secret"));
  SLUICE_TRY_VOID(check_owner(training_job, world.pool, "DataWorkerPool"));

  // 2. No worker without a trainer that may use it, whoever set the number.
  const bool job_over = world.job && (observe::condition_is_true(*world.job, "Complete") ||
                                      observe::condition_is_true(*world.job, "Failed"));
  const bool workers_allowed = view.may_have_workers() && !job_over;
  if (world.pool && !workers_allowed && observe::integer_field(*world.pool, "/spec/replicas") != 0)
    actions.push_back(decide::scale_pool(*world.pool, 0));
  if (view.finished || job_over) return actions;

  // 3. What the pods need, before the pods. Plain PyTorch (mode Off from the start) needs none of it.
  const bool with_feeder = world.job ? text_field(*world.job, "/metadata/annotations/sluice.dev~1feeder") == "true"
                                     : view.mode != observe::Mode::kOff;
  if (with_feeder) {
    SLUICE_TRY(auto secret, secret_action(world, make_identity));
    if (secret) actions.push_back(std::move(*secret));
    if (auto service = service_action(world)) actions.push_back(std::move(*service));
    if (auto pool = pool_action(world, config)) actions.push_back(std::move(*pool));
  }

  // 4. The trainer.
  SLUICE_TRY(auto job, job_action(world, view, config));
  if (job) actions.push_back(std::move(*job));
  return actions;
}

}  // namespace sluice::act
