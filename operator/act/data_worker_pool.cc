#include "operator/act/data_worker_pool.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "operator/act/pool_status.h"
#include "operator/act/pool_workers.h"
#include "operator/api/conditions.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/fingerprint.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/object_draft.h"
#include "operator/api/pod.h"
#include "operator/api/pod_spec_draft.h"
#include "operator/api/pod_template.h"
#include "operator/api/status_draft.h"

namespace sluice::act {

using namespace api;
using nlohmann::json;

namespace {

constexpr double kInFlightSeconds = 30;  // a watch that is later than this is broken
constexpr double kFirstReplacementSeconds = 5;
constexpr double kMaxReplacementSeconds = 300;
constexpr double kFirstRefusalSeconds = 60;
constexpr double kTakenSeconds = 300;    // until a name is tried again that a stranger's pod has
constexpr double kHinderedSeconds = 60;  // a node that comes up and a registry that hiccups take less

// `node`: where the plan has found room for it; empty: none is known. The cluster's scheduler decides, as it knows
// more, and prefers this one. Without that it takes the emptiest node, which is often a dear one with accelerators,
// whose CPU trainers need.
kube::Action create_worker(const DataWorkerPool& pool, const std::string& name, const std::string& hash,
                           const std::string& node) {
  PodTemplateDraft made(pool.pod_template());
  if (!node.empty()) made.pod().prefer_node(node);
  ObjectDraft pod(kube::kPods, pool.name_space(), name);
  pod.metadata().set_sluice_labels(pool.job(), kWorkerComponent);
  pod.metadata().set_controller(pool, kube::kDataWorkerPools);
  pod.follow(made.take());
  pod.metadata().set_label(kTemplateHashLabel, hash);
  return {kube::Verb::kCreate, kube::kPods, pod.key(), pod.complete(), std::string(kOperatorManager)};
}

kube::Action delete_worker(const PoolWorld& world, const Worker& worker) {
  kube::Action action{kube::Verb::kDelete, kube::kPods, {Object(*world.pool).name_space(), worker.name}};
  action.uid = worker.uid;
  return action;
}

void remove_worker(PoolStep& step, const PoolWorld& world, const Worker& worker) {
  step.actions.push_back(delete_worker(world, worker));
  step.memory.deleting_until[worker.uid] = world.now_seconds + kInFlightSeconds;
}

// The first of the list goes first: the scheduler's choice, then workers that serve no trainer yet, then those with the
// least warm caches.
void sort_for_removal(std::vector<Worker>& workers, const std::vector<std::string>& victims) {
  const auto rank = [&](const Worker& worker) {
    return std::find(victims.begin(), victims.end(), worker.name) - victims.begin();
  };
  std::sort(workers.begin(), workers.end(), [&](const Worker& a, const Worker& b) {
    return std::forward_as_tuple(rank(a), a.ready, b.created, b.name) <
           std::forward_as_tuple(rank(b), b.ready, a.created, a.name);
  });
}

// Workers that end together, or during a pause, count as one failure: a node that goes away takes many with it.
void postpone_replacement(PoolMemory& memory, double now_seconds) {
  if (memory.failures > 0 && now_seconds < memory.replace_not_before_seconds) return;
  double pause_seconds = kFirstReplacementSeconds;
  for (int i = 0; i < memory.failures && pause_seconds < kMaxReplacementSeconds; ++i) pause_seconds *= 2;
  ++memory.failures;
  memory.replace_not_before_seconds = now_seconds + std::min(pause_seconds, kMaxReplacementSeconds);
}

void replace_ended(PoolStep& step, const PoolWorld& world, const Workers& workers) {
  if (!workers.ended.empty()) postpone_replacement(step.memory, world.now_seconds);
  for (const Worker& worker : workers.ended) {
    remove_worker(step, world, worker);
    const std::string reason = worker.reason.empty() ? "no reason given" : worker.reason;
    step.events.push_back({kube::kDataWorkerPools, kube::key_of(*world.pool), Object(*world.pool).uid(),
                           kube::EventType::kWarning, "WorkerEnded", "Replace",
                           "worker " + worker.name + " ended by itself (" + reason + "); it is replaced"});
  }
}

// Whether the worker has been unable to start for long enough to be given up. If not yet, the step is repeated then.
bool is_hopeless(PoolStep& step, const PoolWorld& world, const Worker& worker) {
  if (!worker.hindrance) {
    step.memory.hindered_since.erase(worker.uid);
    return false;
  }
  const double since_seconds = step.memory.hindered_since.try_emplace(worker.uid, world.now_seconds).first->second;
  const double wait_seconds = since_seconds + kHinderedSeconds - world.now_seconds;
  if (wait_seconds > 0) step.look_again(wait_seconds);
  return wait_seconds <= 0;
}

// Workers that hold CPU, or a place in the scheduler's queue, and serve no trainer. They cannot start (tried again
// after a growing pause), have an earlier template and are not ready, or the Service does not find them.
void discard_useless(PoolStep& step, const PoolWorld& world, Workers& workers, bool replaceable) {
  std::erase_if(workers.live, [&](const Worker& worker) {
    const bool hopeless = is_hopeless(step, world, worker);
    const bool superseded = worker.labelled && worker.outdated && !worker.ready && replaceable;
    if (!hopeless && !superseded && worker.labelled) return false;
    if (hopeless && !superseded) {
      step.memory.hindered =
          Refusal{worker.hindrance->reason, "worker " + worker.name + " could not start, gave its " +
                                                "CPU back and is tried again: " + worker.hindrance->message};
      postpone_replacement(step.memory, world.now_seconds);
    }
    if (!worker.labelled) {
      // An admission webhook may take them from each new pod: without a pause 23 pods a second were made and deleted.
      step.memory.hindered = Refusal{
          "WorkerLabelsTaken", "worker " + worker.name + " has lost one of the labels " + std::string(kJobLabel) +
                                   ", " + std::string(kComponentLabel) + " and " + std::string(kTemplateHashLabel) +
                                   ", by which it is known, and is replaced; which admission "
                                   "webhook or controller takes them away?"};
      postpone_replacement(step.memory, world.now_seconds);
    }
    if (worker.ready) --workers.ready;
    remove_worker(step, world, worker);
    return true;
  });
}

void tell_taken(PoolStep& step, const PoolWorld& world, const std::string& name) {
  const DataWorkerPool pool(*world.pool);
  const std::string note = "pod " + name + " has a worker's name and is none of this job's workers; the next worker " +
                           "gets another name. Delete the pod, or make it again under a name of its own";
  for (const auto& [kind, uid] :
       {std::pair(kube::kDataWorkerPools, pool.uid()), std::pair(kube::kTrainingJobs, pool.controller_uid())})
    step.events.push_back({kind, pool.key(), uid, kube::EventType::kWarning, "WorkerNameTaken", "Create", note});
}

void scale_out(PoolStep& step, const PoolWorld& world, Workers workers, std::int64_t missing, const std::string& hash) {
  const double wait_seconds = step.memory.replace_not_before_seconds - world.now_seconds;
  if (step.memory.failures > 0 && wait_seconds > 0) {
    step.look_again(wait_seconds);
    return;
  }
  const bool same_refused = step.memory.refusals > 0 && step.memory.refused_template == hash;
  if (const double refused_seconds = step.memory.refused_until_seconds - world.now_seconds;
      same_refused && refused_seconds > 0) {
    step.look_again(refused_seconds);
    return;
  }
  const DataWorkerPool pool(*world.pool);
  const auto create = [&](const std::string& name) {
    if (!workers.names.insert(name).second) return;
    const auto& nodes = world.new_worker_nodes;
    const bool is_planned = missing <= std::ssize(nodes);
    step.actions.push_back(create_worker(pool, name, hash, is_planned ? nodes[nodes.size() - missing] : ""));
    step.memory.creating_until[name] = world.now_seconds + kInFlightSeconds;
    --missing;
  };
  // These pods may well be there, unseen. A free name beside them would be one worker too many.
  for (const auto& [name, until] : std::map(step.memory.creating_until))
    if (missing > 0) create(name);
  for (int ordinal = 0; missing > 0; ++ordinal) {
    const std::string name = worker_pod_name(pool.job(), ordinal);
    if (workers.strangers.contains(name)) tell_taken(step, world, name);
    create(name);
  }
}

void scale_in(PoolStep& step, const PoolWorld& world, std::vector<Worker> live, std::int64_t surplus) {
  sort_for_removal(live, world.victims);
  for (std::size_t i = 0; i < live.size() && surplus > 0; ++i, --surplus) remove_worker(step, world, live[i]);
}

// A new template (other worker resources, a newer Sluice) reaches a tenth of the pods at a time, at least one, while
// all others serve.
void roll_out(PoolStep& step, const PoolWorld& world, const Workers& workers) {
  std::size_t most = std::max<std::size_t>(1, workers.live.size() / 10);
  for (const Worker& worker : workers.live) {
    if (!worker.outdated) continue;
    remove_worker(step, world, worker);
    if (--most == 0) return;
  }
}

}  // namespace

void PoolStep::look_again(double wait_seconds) {
  const std::chrono::milliseconds wait(static_cast<std::int64_t>(wait_seconds * 1000) + 1);
  again_after = std::min(again_after.value_or(wait), wait);
}

PoolStep reconcile_pool(const PoolWorld& world, const PoolMemory& memory) {
  PoolStep step;
  step.memory = settle(memory, world);
  const DataWorkerPool pool(*world.pool);
  if (pool.deleting()) return step;  // the garbage collector takes the pods
  if (!pool.is_of_its_job())
    return refuse_pool(world, step.memory,
                       {"NotControlled",
                        "no TrainingJob of the pool's name controls it; delete the pool, and make a "
                        "TrainingJob, which brings its own"});
  const json pod_template = pool.pod_template();
  const Result<void> usable = check_pod_template(pod_template, "spec.template");

  const std::string hash = api::fingerprint(pod_template);
  Workers workers = classify(world, step.memory, hash);
  discard_useless(step, world, workers, usable.ok());
  const std::int64_t desired = pool.replicas();
  const std::int64_t creating = std::count_if(step.memory.creating_until.begin(), step.memory.creating_until.end(),
                                              [&](const auto& creation) { return is_in_flight(creation, world); });
  const std::int64_t count = static_cast<std::int64_t>(workers.live.size()) + creating;
  const bool settled = count == desired && creating == 0 && workers.ready == desired;

  if (count >= desired) {
    step.memory.refused.reset();
    step.memory.refusals = 0;
  }
  if (settled) step.memory.hindered.reset();
  if (!usable.ok()) step.memory.refused = Refusal{kSpecRefused, usable.error().message()};

  // 1. Workers that ended by themselves make room. Their replacement waits longer each time that this happens.
  if (settled && world.now_seconds >= step.memory.replace_not_before_seconds) step.memory.failures = 0;
  replace_ended(step, world, workers);
  // 2. One of three: more workers, fewer workers, newer workers.
  if (count < desired && usable.ok())
    scale_out(step, world, workers, desired - count, hash);
  else if (count > desired)
    scale_in(step, world, workers.live, count - desired);
  else if (settled && usable.ok() && step.memory.deleting_until.empty())
    roll_out(step, world, workers);
  // 3. The status tells of workers that are seen, not of those just asked for: the next event brings the rest.
  std::optional<Refusal> blocked = step.memory.refused ? step.memory.refused : step.memory.hindered;
  if (!blocked) blocked = wait_at_gate(workers);
  if (!blocked) blocked = wait_for_scheduler(step, world, workers);
  report(step, world, pool_status(world, workers, desired, blocked), settled || blocked);

  const bool waiting = creating > 0 || !step.actions.empty() || !step.memory.deleting_until.empty();
  if (waiting && !step.again_after) step.again_after = std::chrono::seconds(static_cast<int>(kInFlightSeconds) + 1);
  return step;
}

void forget_failed(PoolMemory& memory, const kube::Action& action) {
  if (action.verb == kube::Verb::kCreate) memory.creating_until[action.key.name] = 0;
  if (action.verb == kube::Verb::kDelete) memory.deleting_until.erase(action.uid);
}

void note_taken(PoolStep& step, const PoolWorld& world, const kube::Action& action) {
  step.memory.creating_until.erase(action.key.name);
  step.memory.taken_until[action.key.name] = world.now_seconds + kTakenSeconds;
  step.again_after = std::chrono::milliseconds(0);
  tell_taken(step, world, action.key.name);
}

void note_refused(PoolMemory& memory, const PoolWorld& world, Refusal refusal) {
  memory.refused = std::move(refusal);
  memory.refused_until_seconds =
      world.now_seconds + std::min(kFirstRefusalSeconds * std::exp2(memory.refusals), kMaxReplacementSeconds);
  memory.refusals = std::min(memory.refusals + 1, 10);
  memory.refused_template = api::fingerprint(DataWorkerPool(*world.pool).pod_template());
}

}  // namespace sluice::act
