#include "operator/act/reconcilers.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/act/status.h"
#include "operator/names.h"
#include "operator/observe/fields.h"
#include "src/base/logging.h"
#include "src/kube/timestamp.h"

namespace sluice::act {

using nlohmann::json;
using observe::text_field;

namespace {

constexpr auto kSecretBelievedFor = std::chrono::minutes(5);
constexpr std::size_t kMaxKnownJobs = 100000;
// A change of a spec is followed by a decision, and that by a pool's new number: one status tells of all three.
constexpr double kFiguresSettleSeconds = 1;
constexpr std::chrono::milliseconds kRefusedAgainAfter = std::chrono::minutes(1);

bool may_pass_by_itself(const Error& error) {
  return error.code() != ErrorCode::kInvalidArgument && error.code() != ErrorCode::kPermissionDenied;
}

}  // namespace

TrainingJobReconciler::TrainingJobReconciler(ClusterSeams seams, const control::Config& config,
                                             const decide::DecisionBoard& board, const Clock& clock)
    : seams_(std::move(seams)), config_(config), board_(board), clock_(clock) {}

Again TrainingJobReconciler::reconcile(const kube::ObjectKey& key, std::stop_token stop) {
  // 1. See.
  TrainingJobWorld world;
  world.training_job = seams_.seen(kube::kTrainingJobs, key);
  if (!world.training_job) return std::optional<std::chrono::milliseconds>();
  world.job = seams_.seen(kube::kJobs, key);
  world.service = seams_.seen(kube::kServices, {key.namespace_, control::service_name(key.name)});
  world.pool = seams_.seen(kube::kDataWorkerPools, key);
  SLUICE_TRY(world.secret, secret_of(*world.training_job, stop));

  // 2. Children. What went wrong is for the status to say.
  const Result<void> children = bring_children(world, stop);

  // 3. Status.
  const decide::DecisionPointer decision = board_.get(key);
  StatusStep step = reconcile_status(world, decision.get(), children.ok() ? nullptr : &children.error(),
                                     kube::format_time(clock_.wall_now()));
  SLUICE_TRY(const auto again, report(world, std::move(step), stop));
  if (children.ok()) return again;
  if (may_pass_by_itself(children.error())) return children.error();
  // What the API server refuses stays refused until the spec or our rights change; look again now and then.
  return std::optional(std::min<std::chrono::milliseconds>(again.value_or(kRefusedAgainAfter), kRefusedAgainAfter));
}

// A condition that turns is told at once. Figures settle, wait while there are pods to write, and are one status then.
Again TrainingJobReconciler::report(const TrainingJobWorld& world, StatusStep step, std::stop_token stop) {
  const std::string uid = text_field(*world.training_job, "/metadata/uid");
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
  if (step.action) SLUICE_TRY_VOID(seams_.perform(*step.action, stop));
  for (kube::Event& event : step.events) seams_.record(std::move(event));
  return std::optional<std::chrono::milliseconds>();
}

Result<kube::ObjectPointer> TrainingJobReconciler::secret_of(const json& training_job, std::stop_token stop) {
  const std::string uid = text_field(training_job, "/metadata/uid");
  {
    std::lock_guard lock(mutex_);
    const auto known = secrets_.find(uid);
    if (known != secrets_.end() && clock_.now() - known->second.read_at < kSecretBelievedFor)
      return known->second.metadata;
  }
  const kube::ObjectKey key = kube::key_of(training_job);
  const auto secret = seams_.read(kube::kSecrets, {key.namespace_, control::secret_name(key.name)}, stop);
  if (!secret.ok() && secret.error().code() == ErrorCode::kNotFound) return kube::ObjectPointer();
  if (!secret.ok()) return secret.error();
  auto metadata = std::make_shared<const json>(json{{"metadata", observe::field(*secret, "/metadata")}});
  if (!observe::controlled_by(*metadata, training_job)) return kube::ObjectPointer(metadata);
  std::lock_guard lock(mutex_);
  if (secrets_.size() >= kMaxKnownJobs) secrets_.clear();
  secrets_[uid] = {metadata, clock_.now()};
  return kube::ObjectPointer(metadata);
}

Result<void> TrainingJobReconciler::bring_children(const TrainingJobWorld& world, std::stop_token stop) {
  const auto make_identity = [this](const std::string& job) {
    return make_tls_identity(job, control::kTlsServerName, clock_.wall_now());
  };
  SLUICE_TRY(const auto actions, reconcile_children(world, config_, make_identity));
  for (const kube::Action& action : actions) {
    auto done = seams_.perform(action, stop);
    if (!done.ok() && done.error().code() == ErrorCode::kAlreadyExists)
      done = after_existing(*world.training_job, action, stop);
    if (!done.ok()) return done.error();
    log_info("act", action.to_string());
  }
  return {};
}

// Creating met an object that the informers have not shown: our own, made a moment ago, or a stranger's.
Result<void> TrainingJobReconciler::after_existing(const json& training_job, const kube::Action& action,
                                                   std::stop_token stop) {
  SLUICE_TRY(const json existing, seams_.read(action.resource, action.key, stop));
  if (observe::controlled_by(existing, training_job)) return {};
  return Error(ErrorCode::kAlreadyExists,
               std::string(action.resource.kind) + " " + action.key.name +
                   " exists and belongs to another owner; delete it or rename the TrainingJob");
}

PoolReconciler::PoolReconciler(ClusterSeams seams, WorkersOf workers_of, const decide::DecisionBoard& board,
                               const Clock& clock)
    : seams_(std::move(seams)), workers_of_(std::move(workers_of)), board_(board), clock_(clock) {}

PoolWorld PoolReconciler::world_of(const kube::ObjectKey& key, kube::ObjectPointer pool) const {
  PoolWorld world;
  const kube::ObjectKey job{key.namespace_, text_field(*pool, "/spec/jobName")};
  world.pods = workers_of_(job);
  // The plan's victims are for the plan's number; somebody may have set another one since.
  if (const auto decision = board_.get(job);
      decision && decision->plan.workers == observe::integer_field(*pool, "/spec/replicas"))
    world.victims = decision->plan.victims;
  world.pool = std::move(pool);
  world.busy_seconds = std::chrono::duration<double>(seams_.busy()).count();
  world.now_seconds = std::chrono::duration<double>(clock_.now().time_since_epoch()).count();
  world.now = kube::format_time(clock_.wall_now());
  return world;
}

Again PoolReconciler::reconcile(const kube::ObjectKey& key, std::stop_token stop) {
  const kube::ObjectPointer pool = seams_.seen(kube::kDataWorkerPools, key);
  const std::string uid = pool ? text_field(*pool, "/metadata/uid") : "";
  PoolMemory memory;
  {
    std::lock_guard lock(mutex_);
    std::string& last_uid = last_uids_[key];
    if (last_uid != uid) memories_.erase(last_uid);
    last_uid = uid;
    if (uid.empty()) last_uids_.erase(key);
    if (const auto found = memories_.find(uid); found != memories_.end()) memory = found->second;
  }
  if (!pool) return std::optional<std::chrono::milliseconds>();

  PoolStep step = reconcile_pool(world_of(key, pool), memory);
  const Result<void> pods = bring_pods(step, *pool, stop);
  // The status is as true when a pod was refused as when it was made.
  const Result<void> status = step.status ? seams_.perform(*step.status, stop) : Result<void>();
  if (!status.ok()) step.memory.unreported_since_seconds.reset();
  {
    std::lock_guard lock(mutex_);
    memories_[uid] = step.memory;
  }
  if (!pods.ok()) return pods.error();
  if (!status.ok()) return status.error();
  return step.again_after;
}

Result<void> PoolReconciler::bring_pods(PoolStep& step, const json& pool, std::stop_token stop) {
  for (std::size_t index = 0; index < step.actions.size(); ++index) {
    const kube::Action& action = step.actions[index];
    const auto done = seams_.perform(action, stop);
    // A pod that exists will be seen; what the step expects is right.
    if (done.ok() || done.error().code() == ErrorCode::kAlreadyExists) {
      log_info("act", action.to_string());
      continue;
    }
    forget_failed(step.memory, step.actions, index);
    if (!may_pass_by_itself(done.error()))
      seams_.record({kube::kDataWorkerPools, kube::key_of(pool), text_field(pool, "/metadata/uid"),
                     kube::EventType::kWarning, "WorkerRefused", "Create", done.error().message()});
    return done.error();
  }
  // The next step will not tell of them again, whatever becomes of the status.
  for (kube::Event& event : step.events) seams_.record(std::move(event));
  return {};
}

}  // namespace sluice::act
