#include "operator/act/training_job_reconciler.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "operator/act/child_owner.h"
#include "operator/act/data_worker_pool.h"
#include "operator/api/names.h"
#include "operator/api/network_policy.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_job.h"
#include "operator/api/training_job.h"
#include "src/base/guarded.h"
#include "src/base/logging.h"
#include "src/kube/timestamp.h"

namespace sluice::act {

using nlohmann::json;

namespace {

constexpr auto kSecretBelievedFor = std::chrono::minutes(5);
constexpr std::size_t kMaxKnownJobs = 20000;
// A decision follows a change of a spec, and a pool's new number follows the decision. One status tells of all three.
constexpr double kFiguresSettleSeconds = 1;
constexpr std::chrono::milliseconds kLeftPodAgainAfter = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kLookAgainAfter = std::chrono::minutes(1);  // while a gang waits for its restart

bool is_same_version(const json& one, const json& other) {
  const api::Object a(one), b(other);
  return a.uid() == b.uid() && a.resource_version() == b.resource_version();
}

}  // namespace

TrainingJobReconciler::TrainingJobReconciler(ClusterSeams seams, PodsOf trainers_of, const control::Config& config,
                                             const decide::DecisionBoard& board, const Clock& clock)
    : seams_(std::move(seams)),
      trainers_of_(std::move(trainers_of)),
      config_(config),
      board_(board),
      clock_(clock),
      claims_(seams_.read, clock),
      devices_(seams_.read, clock),
      cache_identity_(seams_, config, clock),
      refused_(clock),
      overwritten_(clock) {}

Again TrainingJobReconciler::reconcile(const kube::ObjectKey& key, std::stop_token stop) {
  // 1. Look at the objects.
  TrainingJobWorld world;
  world.training_job = seams_.seen(kube::kTrainingJobs, key);
  if (!world.training_job) {
    std::lock_guard lock(mutex_);
    secrets_.erase(key);
    failures_.erase(key);
    refused_.forget(key);
    std::lock_guard ports_lock(ports_mutex_);
    given_ports_.erase(key);
    return std::optional<std::chrono::milliseconds>();
  }
  world.job = seams_.seen(kube::kJobs, key);
  world.trainer_pods = trainers_of_(key);
  world.service = seams_.seen(kube::kServices, {key.namespace_, api::service_name(key.name)});
  world.trainers_service = seams_.seen(kube::kServices, {key.namespace_, api::trainers_service_name(key.name)});
  world.pool = seams_.seen(kube::kDataWorkerPools, key);
  world.network_policy = seams_.seen(api::kNetworkPolicies, {key.namespace_, api::network_policy_name(key.name)});
  world.limit_ranges = seams_.limit_ranges(key.namespace_);
  const std::optional<Error> refused_before = refused_.standing(key, world);
  if (!refused_before) SLUICE_TRY_VOID(look_at_secret(world, stop));
  SLUICE_TRY(world.unshared_data, claims_.unshared_data(api::TrainingJob(*world.training_job), stop));
  world.claimed_accelerators = devices_.accelerators(api::TrainingJob(*world.training_job), stop);
  if (!config_.node_cache.address.empty()) {
    SLUICE_TRY(world.claims, claims_.uids(api::TrainingJob(*world.training_job), stop));
    world.cache_authorities = cache_identity_.authorities(stop);
  }
  world.now = clock_.wall_now();
  world.job_failed_for = job_failed_for(key, world.job);

  // 2. Write the children, unless that was refused a moment ago. The status tells of errors.
  std::optional<std::chrono::milliseconds> later;
  const Result<void> children = refused_before ? Result<void>(*refused_before) : bring_children(world, later, stop);
  if (!refused_before) refused_.note(key, world, children);

  // 3. Write the status.
  const decide::DecisionPointer decision = board_.get(key);
  StatusStep step = reconcile_status(world, decision.get(), children.ok() ? nullptr : &children.error(),
                                     kube::format_time(clock_.wall_now()));
  SLUICE_TRY(auto again, report(world, std::move(step), stop));
  if (later) again = std::min(again.value_or(*later), *later);
  if (!left_trainer_pod(world).empty()) again = std::min(again.value_or(kLeftPodAgainAfter), kLeftPodAgainAfter);
  if (const auto wait = restart_wait(world)) again = std::min({again.value_or(*wait), *wait, kLookAgainAfter});
  if (children.ok()) return again;
  if (!refused_before && may_pass_by_itself(children.error())) return children.error();
  const auto pause = refused_.pause(key);
  return pause ? std::optional(std::min(again.value_or(*pause), *pause)) : again;
}

// The time begins when the operator first sees the failure. A restart of the operator begins anew.
std::chrono::duration<double> TrainingJobReconciler::job_failed_for(const kube::ObjectKey& key,
                                                                    const kube::ObjectPointer& job) {
  std::lock_guard lock(mutex_);
  if (!job || !api::TrainerJob(*job).failed()) {
    failures_.erase(key);
    return std::chrono::duration<double>(0);
  }
  if (failures_.size() >= kMaxKnownJobs) failures_.clear();
  SeenFailure& seen = failures_[key];
  if (const std::string uid = api::Object(*job).uid(); seen.job_uid != uid) seen = {uid, clock_.now()};
  return clock_.now() - seen.since;
}

// A status with a condition that turns is written at once. Figures wait until they settle and no pods are to be
// written.
Again TrainingJobReconciler::report(const TrainingJobWorld& world, StatusStep step, std::stop_token stop) {
  const std::string uid = api::Object(*world.training_job).uid();
  const double busy_seconds = std::chrono::duration<double>(seams_.busy()).count();
  {
    std::lock_guard lock(mutex_);
    if (unreported_since_.size() >= kMaxKnownJobs) unreported_since_.clear();
    if (step.action && !step.urgent) {
      const auto since = unreported_since_.try_emplace(uid, clock_.now()).first->second;
      const double waited_seconds = std::chrono::duration<double>(clock_.now() - since).count();
      const std::chrono::duration<double> wait(
          std::max(kFiguresSettleSeconds - waited_seconds, report_wait_seconds(waited_seconds, busy_seconds)));
      if (wait.count() > 0) return std::optional(std::chrono::ceil<std::chrono::milliseconds>(wait));
    }
    unreported_since_.erase(uid);
  }
  const Result<void> written = step.action ? seams_.perform(*step.action, stop) : Result<void>();
  // An object that was stored in a shape that its schema refuses today takes no status: the events are all that it
  // gets.
  const bool is_mute = !written.ok() && written.error().code() == ErrorCode::kInternal;
  if (!written.ok() && !is_mute) return written.error();
  for (kube::Event& event : step.events) seams_.record(std::move(event));
  if (is_mute) return written.error();
  return std::optional<std::chrono::milliseconds>();
}

Result<void> TrainingJobReconciler::look_at_secret(TrainingJobWorld& world, std::stop_token stop) {
  const api::Object training_job(*world.training_job);
  const kube::ObjectKey key = kube::key_of(*world.training_job);
  {
    std::lock_guard lock(mutex_);
    const auto known = secrets_.find(key);
    if (known != secrets_.end() && known->second.job_uid == training_job.uid()) {
      world.lost_secret = known->second.secret;
      world.secret_rotates_at = known->second.rotates_at;
      if (clock_.now() - known->second.read_at < kSecretBelievedFor) {
        world.secret = std::exchange(world.lost_secret, nullptr);
        return {};
      }
    }
  }
  auto secret = seams_.read(kube::kSecrets, {key.namespace_, api::secret_name(key.name)}, stop);
  if (!secret.ok() && secret.error().code() == ErrorCode::kNotFound) return {};
  if (!secret.ok()) return secret.error();
  const kube::ObjectPointer before = std::exchange(world.lost_secret, nullptr);
  world.secret = std::make_shared<const json>(std::move(*secret));
  if (!before || !is_same_version(*before, *world.secret)) world.secret_rotates_at = secret_rotates_at(*world.secret);
  if (!api::Object(*world.secret).controlled_by(training_job)) return {};
  std::lock_guard lock(mutex_);
  if (secrets_.size() >= kMaxKnownJobs) secrets_.clear();
  secrets_[key] = {training_job.uid(), world.secret, clock_.now(), world.secret_rotates_at};
  return {};
}

// One at a time where ports of nodes are chosen: two jobs would choose the same ones.
Result<std::vector<kube::Action>> TrainingJobReconciler::decide_children(TrainingJobWorld& world) {
  const auto make_identity = [this](const std::string& job) {
    return make_tls_identity(job, api::kTlsServerName, clock_.wall_now());
  };
  const auto decide = [&] {
    return guarded(ErrorCode::kInvalidArgument, "the spec cannot be worked with; correct it",
                   [&] { return reconcile_children(world, config_, make_identity); });
  };
  const kube::ObjectKey key = kube::key_of(*world.training_job);
  if (!api::PodSpec(api::TrainingJob(*world.training_job).trainer_pod()).on_host_network()) return decide();
  std::lock_guard lock(ports_mutex_);
  if (world.job) {
    given_ports_.erase(key);  // it is seen with them
    return decide();
  }
  world.held_host_ports = seams_.host_ports(key);
  for (const auto& [job, ports] : given_ports_)
    if (job != key) world.held_host_ports.insert(ports.begin(), ports.end());
  auto actions = decide();
  if (!actions.ok()) return actions;
  if (given_ports_.size() >= kMaxKnownJobs) given_ports_.clear();
  for (const kube::Action& action : *actions)
    if (action.resource == kube::kJobs) given_ports_[key] = api::TrainerJob(action.body).host_ports();
  return actions;
}

Result<void> TrainingJobReconciler::apply(const json& training_job, const kube::Action& action, std::stop_token stop) {
  SLUICE_TRY_VOID(seams_.perform(action, std::move(stop)));
  if (overwritten_.note(action) >= OverwrittenChildren::kTold)
    seams_.record({kube::kTrainingJobs, kube::key_of(training_job), api::Object(training_job).uid(),
                   kube::EventType::kWarning, "ChildOverwritten", "Apply",
                   std::string(action.resource.kind) + " " + action.key.name +
                       " is changed by another writer again and again; does a second Sluice operator run the jobs of "
                       "this namespace, or does another tool apply a copy of the object?"});
  return {};
}

Result<void> TrainingJobReconciler::bring_children(TrainingJobWorld& world,
                                                   std::optional<std::chrono::milliseconds>& later,
                                                   std::stop_token stop) {
  SLUICE_TRY(const auto actions, decide_children(world));
  for (const kube::Action& action : actions) {
    const bool applies = action.verb == kube::Verb::kApply;
    if (const auto wait = applies ? overwritten_.wait(action) : Clock::Duration(0); wait.count() > 0) {
      const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(wait);
      later = std::min(later.value_or(rounded), rounded);
      continue;
    }
    auto done = applies ? apply(*world.training_job, action, stop) : seams_.perform(action, stop);
    if (!done.ok() && done.error().code() == ErrorCode::kAlreadyExists)
      done = after_existing(*world.training_job, action, stop);
    if (action.resource == kube::kSecrets && action.verb == kube::Verb::kMergePatch) {
      std::lock_guard lock(mutex_);  // whether it was written or not: what is known of it is the past
      secrets_.erase(kube::key_of(*world.training_job));
    }
    if (!done.ok()) return done.error();
    log_info("act", action.to_string());
    // The old certificates are lost: the Secret went while no operator ran.
    if (action.resource == kube::kSecrets && action.verb == kube::Verb::kCreate && world.job && !world.lost_secret)
      seams_.record({kube::kTrainingJobs, kube::key_of(*world.training_job), api::Object(*world.training_job).uid(),
                     kube::EventType::kWarning, "CertificatesReplaced", "Create",
                     "Secret " + action.key.name +
                         " was deleted and is made anew; the feeders that run cannot use new workers until the "
                         "trainer's pods are deleted, and so made again"});
  }
  return {};
}

// Creating met an object that the informers have not shown: our own, made a moment ago, or a stranger's.
Result<void> TrainingJobReconciler::after_existing(const json& training_job, const kube::Action& action,
                                                   std::stop_token stop) {
  SLUICE_TRY(const json existing, seams_.read(action.resource, action.key, stop));
  return check_owner(training_job, existing, action.resource.kind);
}

}  // namespace sluice::act
