#include "operator/act/data_worker_pool.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "operator/act/conditions.h"
#include "operator/act/objects.h"
#include "operator/names.h"
#include "operator/observe/fields.h"

namespace sluice::act {

using namespace control;
using nlohmann::json;
using observe::field;
using observe::integer_field;
using observe::text_field;

namespace {

constexpr double kInFlightSeconds = 30;  // a watch that is later than this is broken; the names protect us then
constexpr double kFirstReplacementSeconds = 5;
constexpr double kMaxReplacementSeconds = 300;
constexpr double kReportSeconds = 10;   // between two statuses on the way to the wanted number
constexpr double kManyWaitSeconds = 1;  // of what others wait for: from here on a status waits for the last of it
constexpr double kReportsWaitAtMostSeconds = 60;

// One worker pod, as far as scaling needs it.
struct Worker {
  const json* pod = nullptr;
  std::string name;
  std::string uid;
  std::string created;  // RFC 3339 in UTC: later sorts higher
  bool ready = false;
  bool outdated = false;  // made from an earlier template
};

struct Workers {
  std::vector<Worker> live;
  std::vector<Worker> ended;    // Failed or Succeeded: an eviction, a node that went away
  std::set<std::string> names;  // taken, whoever holds them
  std::int64_t ready = 0;
};

Workers classify(const PoolWorld& world, const PoolMemory& memory, const std::string& hash) {
  Workers workers;
  for (const kube::ObjectPointer& pod : world.pods) {
    Worker worker{pod.get(), text_field(*pod, "/metadata/name"), text_field(*pod, "/metadata/uid"),
                  text_field(*pod, "/metadata/creationTimestamp")};
    workers.names.insert(worker.name);
    if (!observe::controlled_by(*pod, *world.pool)) continue;
    const bool leaving =
        !field(*pod, "/metadata/deletionTimestamp").is_null() || memory.deleting_until.contains(worker.uid);
    if (leaving) continue;
    worker.ready = observe::condition_is_true(*pod, "Ready");
    worker.outdated = text_field(*pod, "/metadata/labels/sluice.dev~1template-hash") != hash;
    const std::string phase = text_field(*pod, "/status/phase");
    const bool ended = phase == "Failed" || phase == "Succeeded";
    if (!ended && worker.ready) ++workers.ready;
    (ended ? workers.ended : workers.live).push_back(std::move(worker));
  }
  for (const auto& [name, until] : memory.creating_until) workers.names.insert(name);
  return workers;
}

// Forgets the writes that have been seen, or waited for long enough.
PoolMemory settle(PoolMemory memory, const PoolWorld& world) {
  std::set<std::string> names;
  std::set<std::string> alive;
  for (const kube::ObjectPointer& pod : world.pods) {
    names.insert(text_field(*pod, "/metadata/name"));
    if (field(*pod, "/metadata/deletionTimestamp").is_null()) alive.insert(text_field(*pod, "/metadata/uid"));
  }
  std::erase_if(memory.creating_until,
                [&](const auto& entry) { return names.contains(entry.first) || entry.second <= world.now_seconds; });
  std::erase_if(memory.deleting_until,
                [&](const auto& entry) { return !alive.contains(entry.first) || entry.second <= world.now_seconds; });
  return memory;
}

kube::Action create_worker(const json& pool, const std::string& name, const std::string& hash) {
  const std::string job = text_field(pool, "/spec/jobName");
  json pod = field(pool, "/spec/template");
  json metadata = child_metadata(pool, kApiVersion, kPoolKind, name, job, kWorkerComponent);
  metadata["labels"].update(field(pool, "/spec/template/metadata/labels"));
  metadata["labels"][std::string(kTemplateHashLabel)] = hash;
  if (const json& annotations = field(pool, "/spec/template/metadata/annotations"); annotations.is_object())
    metadata["annotations"] = annotations;
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"] = std::move(metadata);
  const kube::ObjectKey key = kube::key_of(pod);
  return {kube::Verb::kCreate, kube::kPods, key, std::move(pod), std::string(kOperatorManager)};
}

kube::Action delete_worker(const PoolWorld& world, const Worker& worker) {
  kube::Action action{kube::Verb::kDelete, kube::kPods, {text_field(*world.pool, "/metadata/namespace"), worker.name}};
  action.uid = worker.uid;
  return action;
}

void remove_worker(PoolStep& step, const PoolWorld& world, const Worker& worker) {
  step.actions.push_back(delete_worker(world, worker));
  step.memory.deleting_until[worker.uid] = world.now_seconds + kInFlightSeconds;
}

// First to go first: the scheduler's choice, then those that serve nobody yet, then those with the least warm caches.
void sort_for_removal(std::vector<Worker>& workers, const std::vector<std::string>& victims) {
  const auto rank = [&](const Worker& worker) {
    return std::find(victims.begin(), victims.end(), worker.name) - victims.begin();
  };
  std::sort(workers.begin(), workers.end(), [&](const Worker& a, const Worker& b) {
    return std::forward_as_tuple(rank(a), a.ready, b.created, b.name) <
           std::forward_as_tuple(rank(b), b.ready, a.created, a.name);
  });
}

// What ends together, or while a pause lasts, is one failure: a node that goes away takes many workers with it.
void postpone_replacement(PoolMemory& memory, double now_seconds) {
  if (memory.failures > 0 && now_seconds < memory.replace_not_before_seconds) return;
  double pause_seconds = kFirstReplacementSeconds;
  for (int i = 0; i < memory.failures && pause_seconds < kMaxReplacementSeconds; ++i) pause_seconds *= 2;
  ++memory.failures;
  memory.replace_not_before_seconds = now_seconds + std::min(pause_seconds, kMaxReplacementSeconds);
}

void look_again(PoolStep& step, double wait_seconds) {
  const std::chrono::milliseconds wait(static_cast<std::int64_t>(wait_seconds * 1000) + 1);
  step.again_after = std::min(step.again_after.value_or(wait), wait);
}

void replace_ended(PoolStep& step, const PoolWorld& world, const Workers& workers) {
  if (!workers.ended.empty()) postpone_replacement(step.memory, world.now_seconds);
  for (const Worker& worker : workers.ended) {
    remove_worker(step, world, worker);
    const std::string reason = text_field(*worker.pod, "/status/reason", "no reason given");
    step.events.push_back({kube::kDataWorkerPools, kube::key_of(*world.pool), text_field(*world.pool, "/metadata/uid"),
                           kube::EventType::kWarning, "WorkerEnded", "Replace",
                           "worker " + worker.name + " ended by itself (" + reason + "); it is replaced"});
  }
}

void scale_out(PoolStep& step, const PoolWorld& world, std::set<std::string> names, std::int64_t missing,
               const std::string& hash) {
  const double wait_seconds = step.memory.replace_not_before_seconds - world.now_seconds;
  if (step.memory.failures > 0 && wait_seconds > 0) {
    look_again(step, wait_seconds);
    return;
  }
  const std::string job = text_field(*world.pool, "/spec/jobName");
  for (int ordinal = 0; missing > 0; ++ordinal) {
    const std::string name = worker_pod_name(job, ordinal);
    if (!names.insert(name).second) continue;
    step.actions.push_back(create_worker(*world.pool, name, hash));
    step.memory.creating_until[name] = world.now_seconds + kInFlightSeconds;
    --missing;
  }
}

void scale_in(PoolStep& step, const PoolWorld& world, std::vector<Worker> live, std::int64_t surplus) {
  sort_for_removal(live, world.victims);
  for (std::size_t i = 0; i < live.size() && surplus > 0; ++i, --surplus) remove_worker(step, world, live[i]);
}

// A new template (other worker resources, a newer Sluice) reaches the pods one by one, while all others serve.
void roll_out(PoolStep& step, const PoolWorld& world, const Workers& workers) {
  for (const Worker& worker : workers.live) {
    if (!worker.outdated) continue;
    remove_worker(step, world, worker);
    return;
  }
}

// Every pod that starts changes the counts, and a status costs the API server as much as a pod (bench/scale). So the
// way to the wanted number is told now and then, the arrival at once, and either only after the pods of all pools; but
// not as long as pods are asked for, which may be refused again and again.
void report(PoolStep& step, const PoolWorld& world, std::optional<kube::Action> status, bool arrived) {
  if (!status) return;
  std::optional<double>& since_seconds = step.memory.unreported_since_seconds;
  const bool pods_first = !step.actions.empty() || world.busy_seconds > 0;
  if (pods_first && !since_seconds) since_seconds = world.now_seconds;
  if (since_seconds) {
    const double waited_seconds = world.now_seconds - *since_seconds;
    const double wait_seconds = std::max(arrived ? 0 : kReportSeconds - waited_seconds,
                                         report_wait_seconds(waited_seconds, world.busy_seconds));
    if (wait_seconds > 0) return look_again(step, wait_seconds);
  }
  if (arrived)
    since_seconds.reset();
  else
    since_seconds = world.now_seconds;
  step.status = std::move(status);
}

std::optional<kube::Action> status_action(const PoolWorld& world, const Workers& workers, std::int64_t desired) {
  const json& pool = *world.pool;
  const std::int64_t generation = integer_field(pool, "/metadata/generation");
  const auto live = static_cast<std::int64_t>(workers.live.size());
  const bool ready = workers.ready == desired && live == desired;
  const std::string count = std::to_string(workers.ready) + " of " + std::to_string(desired) + " workers are ready";
  const Condition condition{"Ready", ready ? Truth::kTrue : Truth::kFalse, ready ? "AllReady" : "Scaling", count};
  json status = {
      {"observedGeneration", generation},
      {"replicas", live},
      {"readyReplicas", workers.ready},
      {"selector", std::string(kJobLabel) + "=" + text_field(pool, "/spec/jobName") + "," +
                       std::string(kComponentLabel) + "=" + std::string(kWorkerComponent)},
      {"conditions", render_conditions({condition}, field(pool, "/status/conditions"), generation, world.now)}};
  if (status == field(pool, "/status")) return std::nullopt;
  kube::Action action{kube::Verb::kApplyStatus,
                      kube::kDataWorkerPools,
                      kube::key_of(pool),
                      {{"status", std::move(status)}},
                      std::string(kOperatorManager)};
  action.uid = text_field(pool, "/metadata/uid");
  action.version = text_field(pool, "/metadata/resourceVersion");  // never over what has been said since
  return action;
}

}  // namespace

double report_wait_seconds(double waited_seconds, double busy_seconds) {
  const bool many = busy_seconds >= kManyWaitSeconds;
  return std::min(busy_seconds, (many ? kReportsWaitAtMostSeconds : busy_seconds) - waited_seconds);
}

PoolStep reconcile_pool(const PoolWorld& world, const PoolMemory& memory) {
  PoolStep step;
  step.memory = settle(memory, world);
  const json& pool = *world.pool;
  if (!field(pool, "/metadata/deletionTimestamp").is_null()) return step;  // the garbage collector takes the pods

  const std::string hash = template_hash(field(pool, "/spec/template"));
  const Workers workers = classify(world, step.memory, hash);
  const std::int64_t desired = integer_field(pool, "/spec/replicas");
  const auto creating = static_cast<std::int64_t>(step.memory.creating_until.size());
  const std::int64_t count = static_cast<std::int64_t>(workers.live.size()) + creating;
  const bool settled = count == desired && creating == 0 && workers.ready == desired;

  // 1. What ended by itself makes room; its replacement is delayed the more, the more often that happens.
  if (settled && world.now_seconds >= step.memory.replace_not_before_seconds) step.memory.failures = 0;
  replace_ended(step, world, workers);
  // 2. One of: more, fewer, newer.
  if (count < desired)
    scale_out(step, world, workers.names, desired - count, hash);
  else if (count > desired)
    scale_in(step, world, workers.live, count - desired);
  else if (settled && step.memory.deleting_until.empty())
    roll_out(step, world, workers);
  // 3. What was seen, not what was just asked for: the next event brings the rest.
  report(step, world, status_action(world, workers, desired), settled);

  const bool waiting = !step.memory.creating_until.empty() || !step.memory.deleting_until.empty();
  if (waiting && !step.again_after) step.again_after = std::chrono::seconds(static_cast<int>(kInFlightSeconds) + 1);
  return step;
}

void forget_failed(PoolMemory& memory, const std::vector<kube::Action>& actions, std::size_t first_failed) {
  for (std::size_t index = first_failed; index < actions.size(); ++index) {
    const kube::Action& action = actions[index];
    if (action.verb == kube::Verb::kCreate) memory.creating_until.erase(action.key.name);
    if (action.verb == kube::Verb::kDelete) memory.deleting_until.erase(action.uid);
  }
}

}  // namespace sluice::act
