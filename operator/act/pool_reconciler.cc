#include "operator/act/pool_reconciler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "operator/api/conditions.h"
#include "operator/api/data_worker_pool.h"
#include "src/base/guarded.h"
#include "src/base/in_parallel.h"
#include "src/base/logging.h"
#include "src/kube/timestamp.h"

namespace sluice::act {

namespace {

constexpr std::size_t kMostPodsInOneGo = 16;

}  // namespace

PoolReconciler::PoolReconciler(ClusterSeams seams, PodsOf workers_of, const decide::DecisionBoard& board,
                               const Clock& clock)
    : seams_(std::move(seams)), workers_of_(std::move(workers_of)), board_(board), clock_(clock) {}

PoolWorld PoolReconciler::world_of(const kube::ObjectKey& key, kube::ObjectPointer pool) const {
  PoolWorld world;
  const kube::ObjectKey job{key.namespace_, api::DataWorkerPool(*pool).job()};
  world.pods = workers_of_(job);
  // The plan's victims and nodes are for the plan's number; a person may have set another one since.
  if (const auto decision = board_.get(job);
      decision && decision->plan.workers == api::DataWorkerPool(*pool).replicas()) {
    world.victims = decision->plan.victims;
    world.new_worker_nodes = decision->plan.new_worker_nodes;
  }
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
  const bool is_held_up = !pods.outcome.ok() && is_of_webhook(pods.outcome.error());
  if (is_held_up)
    step.memory.hindered = Refusal{
        "WebhookUnanswered", "workers are tried again and again, and the last time " + pods.outcome.error().message()};
  if (pods.refused || is_held_up) {
    const PoolStep told = reconcile_pool(world, step.memory);  // whose status says why
    step.status = told.status;
    step.again_after = told.again_after;
  }
  // The status is true whether the pods were made or refused.
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

// Deletions free the room that creations fill. Creations begin with one, then two, four ... A refusal of all pods of a
// pool (a quota that is used up, a forbidden setting) then costs few requests. A refusal of one pod does not keep the
// others.
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
  // The events are told now: the next step has no reason to tell them again.
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
