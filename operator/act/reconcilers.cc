#include "operator/act/reconcilers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "operator/act/status.h"
#include "operator/api/conditions.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/names.h"
#include "operator/api/network_policy.h"
#include "operator/api/trainer_job.h"
#include "operator/api/training_job.h"
#include "src/base/guarded.h"
#include "src/base/in_parallel.h"
#include "src/base/logging.h"
#include "src/kube/timestamp.h"

namespace sluice::act {

using nlohmann::json;

namespace {

constexpr auto kSecretBelievedFor = std::chrono::minutes(5);
constexpr std::size_t kMaxKnownJobs = 20000;
// A change of a spec is followed by a decision, and that by a pool's new number: one status tells of all three.
constexpr double kFiguresSettleSeconds = 1;
constexpr std::size_t kMostPodsInOneGo = 16;
constexpr std::chrono::milliseconds kLookAgainAfter = std::chrono::minutes(1);  // while a gang waits for its restart
constexpr std::chrono::milliseconds kRefusedAgainAfter = std::chrono::minutes(1);

bool may_pass_by_itself(const Error& error) {
  return error.code() != ErrorCode::kInvalidArgument && error.code() != ErrorCode::kPermissionDenied;
}

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
      claims_(seams_.read, clock) {}

Again TrainingJobReconciler::reconcile(const kube::ObjectKey& key, std::stop_token stop) {
  // 1. See.
  TrainingJobWorld world;
  world.training_job = seams_.seen(kube::kTrainingJobs, key);
  if (!world.training_job) {
    std::lock_guard lock(mutex_);
    secrets_.erase(key);
    failures_.erase(key);
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
  SLUICE_TRY_VOID(look_at_secret(world, stop));
  SLUICE_TRY(world.unshared_data, claims_.unshared_data(api::TrainingJob(*world.training_job), stop));
  world.limit_ranges = seams_.limit_ranges(key.namespace_);
  world.now = clock_.wall_now();
  world.job_failed_for = job_failed_for(key, world.job);

  // 2. Children. What went wrong is for the status to say.
  const Result<void> children = bring_children(world, stop);

  // 3. Status.
  const decide::DecisionPointer decision = board_.get(key);
  StatusStep step = reconcile_status(world, decision.get(), children.ok() ? nullptr : &children.error(),
                                     kube::format_time(clock_.wall_now()));
  SLUICE_TRY(auto again, report(world, std::move(step), stop));
  if (const auto wait = restart_wait(world)) again = std::min({again.value_or(*wait), *wait, kLookAgainAfter});
  if (children.ok()) return again;
  if (may_pass_by_itself(children.error())) return children.error();
  // What the API server refuses stays refused until the spec or our rights change; look again now and then.
  return std::optional(std::min<std::chrono::milliseconds>(again.value_or(kRefusedAgainAfter), kRefusedAgainAfter));
}

// From when it is seen on. A restart of the operator begins anew.
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

// A condition that turns is told at once. Figures settle, wait while there are pods to write, and are one status then.
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
  const json& pod = api::member(api::TrainingJob(*world.training_job).trainer_template(), "spec");
  if (api::member(pod, "hostNetwork") != true) return decide();
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

Result<void> TrainingJobReconciler::bring_children(TrainingJobWorld& world, std::stop_token stop) {
  SLUICE_TRY(const auto actions, decide_children(world));
  for (const kube::Action& action : actions) {
    auto done = seams_.perform(action, stop);
    if (!done.ok() && done.error().code() == ErrorCode::kAlreadyExists)
      done = after_existing(*world.training_job, action, stop);
    if (action.resource == kube::kSecrets && action.verb == kube::Verb::kMergePatch) {
      std::lock_guard lock(mutex_);  // whether it was written or not: what is known of it is the past
      secrets_.erase(kube::key_of(*world.training_job));
    }
    if (!done.ok()) return done.error();
    log_info("act", action.to_string());
    // The old ones are lost: the Secret went while no operator ran.
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
  if (api::Object(existing).controlled_by(api::Object(training_job))) return {};
  return Error(ErrorCode::kAlreadyExists,
               std::string(action.resource.kind) + " " + action.key.name +
                   " exists and belongs to another owner; delete it or rename the TrainingJob");
}

PoolReconciler::PoolReconciler(ClusterSeams seams, PodsOf workers_of, const decide::DecisionBoard& board,
                               const Clock& clock)
    : seams_(std::move(seams)), workers_of_(std::move(workers_of)), board_(board), clock_(clock) {}

PoolWorld PoolReconciler::world_of(const kube::ObjectKey& key, kube::ObjectPointer pool) const {
  PoolWorld world;
  const kube::ObjectKey job{key.namespace_, api::DataWorkerPool(*pool).job()};
  world.pods = workers_of_(job);
  // The plan's victims are for the plan's number; a person may have set another one since.
  if (const auto decision = board_.get(job);
      decision && decision->plan.workers == api::DataWorkerPool(*pool).replicas())
    world.victims = decision->plan.victims;
  world.pool = std::move(pool);
  world.busy_seconds = std::chrono::duration<double>(seams_.busy()).count();
  world.now_seconds = std::chrono::duration<double>(clock_.now().time_since_epoch()).count();
  world.now = kube::format_time(clock_.wall_now());
  return world;
}

Again PoolReconciler::reconcile(const kube::ObjectKey& key, std::stop_token stop) {
  const kube::ObjectPointer pool = seams_.seen(kube::kDataWorkerPools, key);
  const std::string uid = pool ? api::Object(*pool).uid() : "";
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

  const PoolWorld world = world_of(key, pool);
  const auto made = guarded(ErrorCode::kInvalidArgument, "the spec cannot be worked with; correct it",
                            [&] { return Result<PoolStep>(reconcile_pool(world, memory)); });
  PoolStep step = made.ok() ? *made : refuse_pool(world, memory, {api::kSpecRefused, made.error().message()});
  const Brought pods = bring_pods(step, world, stop);
  if (pods.refused) {
    const PoolStep told = reconcile_pool(world, step.memory);  // whose status says why
    step.status = told.status;
    step.again_after = told.again_after;
  }
  // The status is as true when a pod was refused as when it was made.
  const Result<void> status = step.status ? seams_.perform(*step.status, stop) : Result<void>();
  if (!status.ok()) step.memory.unreported_since_seconds.reset();
  {
    std::lock_guard lock(mutex_);
    memories_[uid] = step.memory;
  }
  if (!status.ok()) return status.error();
  if (!pods.outcome.ok()) return pods.outcome.error();
  return step.again_after;
}

// Deletions free the room that creations fill. Creations begin with one, then two, four ...: what is refused to all
// pods of a pool (a quota that is used up, a forbidden setting) costs few requests, and what is refused to one of them
// does not keep the others.
PoolReconciler::Brought PoolReconciler::bring_pods(PoolStep& step, const PoolWorld& world, std::stop_token stop) {
  Brought brought;
  const std::span<const kube::Action> actions(step.actions);
  const auto is_create = [](const kube::Action& action) { return action.verb == kube::Verb::kCreate; };
  const std::size_t creates =
      static_cast<std::size_t>(std::find_if(actions.begin(), actions.end(), is_create) - actions.begin());
  bool goes_on = true;
  for (std::size_t begin = 0, size = 0; begin < actions.size(); begin += size) {
    size = begin < creates ? creates - begin : begin == creates ? 1 : std::min(2 * size, kMostPodsInOneGo);
    const auto batch = actions.subspan(begin, std::min(size, actions.size() - begin));
    size = batch.size();
    const std::vector<Result<void>> outcomes =
        goes_on ? perform_all(batch, world, stop) : std::vector<Result<void>>(size, unavailable("not asked for"));
    for (std::size_t index = 0; index < size; ++index) {
      const Result<void>& outcome = outcomes[index];
      if (outcome.ok()) {
        log_info("act", batch[index].to_string());
        continue;
      }
      forget_failed(step.memory, batch[index]);
      if (!goes_on) continue;
      if (outcome.error().code() == ErrorCode::kAlreadyExists)
        note_taken(step, world, batch[index]);
      else if (may_pass_by_itself(outcome.error()))
        brought.outcome = outcome;
      else
        refuse(step, world, outcome.error(), brought);
    }
    const auto succeeded = std::count_if(outcomes.begin(), outcomes.end(), [](const auto& each) { return each.ok(); });
    // A pod that was to be deleted, and is still there, leaves no room for another one.
    goes_on = goes_on && (begin < creates ? succeeded == std::ssize(outcomes) : succeeded > 0);
  }
  const bool made_one = goes_on && creates < actions.size();
  if (made_one && !brought.refused) {
    step.memory.refused.reset();
    step.memory.refusals = 0;
  }
  // The next step will not tell of them again, whatever becomes of the status.
  if (brought.outcome.ok() && !brought.refused)
    for (kube::Event& event : step.events) seams_.record(std::move(event));
  return brought;
}

// Once for all pods of a step.
void PoolReconciler::refuse(PoolStep& step, const PoolWorld& world, const Error& error, Brought& brought) {
  if (std::exchange(brought.refused, true)) return;
  const bool forbidden = error.code() == ErrorCode::kPermissionDenied;
  note_refused(step.memory, world, {forbidden ? "Forbidden" : api::kSpecRefused, error.message()});
  seams_.record({kube::kDataWorkerPools, kube::key_of(*world.pool), api::Object(*world.pool).uid(),
                 kube::EventType::kWarning, "WorkerRefused", "Create", error.message()});
}

// Creating met a pod of that name: one of the pool's own, which will be seen, or a stranger's.
Result<void> PoolReconciler::after_existing(const PoolWorld& world, const kube::Action& action,
                                            std::stop_token stop) const {
  const auto existing = seams_.read(kube::kPods, action.key, stop);
  if (!existing.ok() && existing.error().code() == ErrorCode::kNotFound)
    return unavailable(action.key.to_string() + " was there and has gone");
  if (!existing.ok()) return existing.error();
  if (api::Object(*existing).controlled_by(api::Object(*world.pool))) return {};
  return Error(ErrorCode::kAlreadyExists, action.key.to_string() + " is another owner's");
}

std::vector<Result<void>> PoolReconciler::perform_all(std::span<const kube::Action> actions, const PoolWorld& world,
                                                      std::stop_token stop) const {
  std::vector<std::optional<Result<void>>> answers(actions.size());
  const Result<void> all = in_parallel(static_cast<int>(actions.size()), pods_at_once_, [&](int index) -> Result<void> {
    Result<void> outcome = seams_.perform(actions[index], stop);
    if (!outcome.ok() && outcome.error().code() == ErrorCode::kAlreadyExists)
      outcome = after_existing(world, actions[index], stop);
    answers[index] = std::move(outcome);
    return {};
  });
  std::vector<Result<void>> outcomes;
  outcomes.reserve(answers.size());
  for (const auto& answer : answers) outcomes.push_back(answer.value_or(all));  // of who threw
  return outcomes;
}

}  // namespace sluice::act
