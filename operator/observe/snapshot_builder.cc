#include "operator/observe/snapshot_builder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "operator/api/data_worker_pool.h"
#include "operator/api/gang_restart.h"
#include "operator/api/trainer_job.h"
#include "operator/observe/cluster_view.h"
#include "operator/observe/namespace_caps.h"
#include "operator/observe/quotas.h"
#include "operator/observe/storages.h"

namespace sluice::observe {

using nlohmann::json;

namespace {

using api::TrainerJob;
using api::TrainingJobView;
using scheduler::Job;

kube::ObjectPointer find(const kube::Store::Objects& objects, const json& owner) {
  const auto found = objects.find(kube::key_of(owner));
  if (found == objects.end() || !api::Object(*found->second).controlled_by(api::Object(owner))) return nullptr;
  return found->second;
}

constexpr double kHeldBackSeconds = 30;  // admission takes less where there is quota
constexpr int kWorkersThatAsk = 2;       // at a gate that holds workers back

// The part of a job that its spec and its trainer say. Allocation and measurement come later.
Job view_job(const TrainingJobView& view, const TrainerJob& trainer) {
  Job job;
  job.id = {view.name_space, view.name};
  job.gpus = static_cast<int>(view.trainer_gpus) * view.trainer_replicas;
  job.ranks = std::max(job.gpus, view.trainer_replicas);
  job.weight = view.weight;
  job.priority = view.priority;
  job.mode = view.mode;
  // A trainer that was started without a feeder cannot use workers, whatever the mode is now.
  if (!trainer.has_feeder().value_or(true)) job.mode = api::Mode::kOff;
  job.placement = view.placement;
  job.min_workers = view.min_workers;
  job.max_workers = view.max_workers;
  job.worker_millicores = view.worker.request_millicores;
  return job;
}

// While no trainer pod is seen, the spec says its hosts.
std::vector<scheduler::TrainerHost> unseen_hosts(const TrainingJobView& view, const Job& job) {
  const std::int64_t feeder = view.feeder_cpu_limit_milli > 0 ? view.feeder_cpu_limit_milli : view.feeder_cpu_milli;
  return {{.node = "",
           .ranks = job.ranks,
           .gpus = job.gpus,
           .request_millicores = view.feeder_cpu_milli * view.trainer_replicas,
           .limit_millicores = feeder * view.trainer_replicas}};
}

// Whether the trainer trains. A job that has workers has trained. It is not ready while its pod or its feeder restarts,
// nor while all its pods are started again, but taking its workers away for that time would cost their start once more.
// A trainer that finds no node is another
// matter: its own workers may be what fills the nodes, and then it would wait for ever.
bool is_running(const TrainingJobView& view, const TrainerJob& trainer, const TrainerPods& pods,
                int allocated_workers) {
  const bool restarts = api::is_restarting(view, trainer);
  if (view.suspend || (trainer.over() && !restarts)) return false;
  if (std::any_of(pods.begin(), pods.end(), [](const auto* pod) { return pod->second.view.unschedulable; }))
    return false;
  return trainer.ready() > 0 || ((trainer.active() > 0 || restarts) && allocated_workers > 0);
}

// By the uid of the pool that controls them; in the order of their names.
using WorkersByPool = std::unordered_map<std::string_view, std::vector<const PodView*>>;

WorkersByPool workers_by_pool(const PodViews::Entries& pods) {
  WorkersByPool workers;
  for (const auto& [key, pod] : pods)
    if (pod.view.is_worker && !pod.view.finished) workers[pod.view.controller_uid].push_back(&pod.view);
  return workers;
}

// By the uid of the Job that controls them; in the order of their keys.
using TrainersByJob = std::unordered_map<std::string_view, TrainerPods>;

TrainersByJob trainers_by_job(const PodViews::Entries& pods) {
  TrainersByJob trainers;
  for (const auto& pod : pods)
    if (const PodView& view = pod.second.view; view.is_trainer && !view.finished && !view.leaving)
      trainers[view.controller_uid].push_back(&pod);
  return trainers;
}

TrainerPods trainers_of(const TrainersByJob& trainers, const TrainerJob& trainer_job) {
  const std::string uid = trainer_job.uid();
  const auto found = trainers.find(uid);
  return uid.empty() || found == trainers.end() ? TrainerPods() : found->second;
}

// Whether the plan may set the feeders' CPU. A trainer that is being replaced is left alone until all of them are
// there.
bool sets_feeders(const Job& job, const TrainingJobView& view, const std::vector<FeederPod>& feeders,
                  const Circumstances& circumstances) {
  return circumstances.resizes_feeders && job.running && job.mode == scheduler::Mode::kAuto && !view.queued_by_kueue &&
         std::ssize(feeders) == view.trainer_replicas && can_resize(feeders, circumstances.fixed_feeders);
}

// Until it is measured, a job goes by what one like it ended with: its workers count as held, and are started at once.
void begin_as_guessed(const TrainingJobView& view, const Circumstances& circumstances, Job& job) {
  if (job.memory && job.memory->was_measured) return;
  const auto guess = circumstances.guess(view.likeness);
  if (!guess) return;
  if (!job.memory || !job.memory->knee_cores) job.memory = guess->memory;
  const bool may_start = job.running && job.mode == scheduler::Mode::kAuto && view.may_have_workers();
  if (may_start && job.allocated_workers == 0) job.allocated_workers = std::min(guess->workers, job.max_workers);
}

// The requests of worker pods of this size. Earlier workers may hold more memory until they are replaced.
api::ContainerResources resources_of(const SizedWorkers& workers, std::span<const PodView* const> own) {
  api::ContainerResources resources = workers.bounds.resources(workers.size);
  for (const PodView* pod : own)
    resources.request_memory_bytes = std::max(resources.request_memory_bytes, pod->worker_memory_bytes);
  return resources;
}

// A queue such as Kueue lets workers through its gate while there is quota. Workers that it has held back for a while
// are no capacity, and each pod that waits is an object more in its queue. So only a few go on asking.
void bound_by_gate(std::span<const PodView* const> workers, double now_seconds, Job& job) {
  const auto waits = [](const PodView* pod) { return pod->waits_at_gate; };
  const auto is_held_back = [&](const PodView* pod) {
    return waits(pod) && now_seconds - pod->worker.created_at_seconds >= kHeldBackSeconds;
  };
  if (std::none_of(workers.begin(), workers.end(), is_held_back)) return;
  const auto waiting = static_cast<int>(std::count_if(workers.begin(), workers.end(), waits));
  const int most = static_cast<int>(std::ssize(workers)) - waiting + std::min(waiting, kWorkersThatAsk);
  if (most >= job.max_workers) return;
  job.held_at_gate = true;
  job.max_workers = most;
  job.min_workers = std::min(job.min_workers, most);
}

void take_figures(const Observations& observations, Job& job) {
  job.observation = observations.of(job.id);
  job.bytes_per_sample = observations.bytes_per_sample_of(job.id);
  job.remaining_samples = observations.remaining_samples_of(job.id);
  job.kept = observations.kept.of(job.id);
}

void note_held(const Job& job, const api::ContainerResources& worker, const std::string& priority_class,
               HeldByWorkers& held) {
  held.priority_classes.insert(priority_class);
  held.millicores += static_cast<std::int64_t>(job.workers.size()) * job.worker_millicores;
  held.workers.push_back(worker);
}

}  // namespace

kube::ObjectPointer own_pool(const ClusterObjects& objects, const json& training_job) {
  return find(objects.pools, training_job);
}

SnapshotBuilder::SnapshotBuilder()
    : worker_rules_([](const json& object) {
        const api::DataWorkerPool pool(object);
        return WorkerRules{pool.node_rules(), pool.spread_terms()};
      }) {}

void SnapshotBuilder::take_workers(const SeenWorkers& seen, double now_seconds, Job& job) {
  job.allocated_workers = static_cast<int>(seen.wanted);
  bound_by_gate(seen.pods, now_seconds, job);
  for (const PodView* pod : seen.pods) job.workers.push_back(pod->worker);
  if (seen.view->auto_resources && seen.chosen) job.worker_millicores = seen.chosen->millicores;
}

void SnapshotBuilder::cap(const Circumstances& circumstances, Job& job) {
  const auto caps = circumstances.namespace_caps.find(job.id.job_namespace);
  if (caps == circumstances.namespace_caps.end()) return;
  if (std::string capped = apply_caps(caps->second, job); !capped.empty()) capped_[job.id] = std::move(capped);
}

void SnapshotBuilder::bound_workers(const std::vector<SeenWorkers>& workers, const ClusterObjects& objects,
                                    const Observations& observations, const Circumstances& circumstances,
                                    scheduler::ClusterSnapshot& snapshot) {
  keeps_cpu_free_ = std::any_of(objects.nodes.begin(), objects.nodes.end(), [&](const auto& node) {
    return kept_free_millicores(api::Node(*node.second).allocatable_millicores(), circumstances.free_cpu_percent) > 0;
  });
  std::map<std::string, HeldByWorkers> held;
  for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
    Job& job = snapshot.jobs[i];
    const SeenWorkers& seen = workers[i];
    // The worker's container is the largest of its pod, unless the user's template adds others.
    const api::ContainerBounds allowed =
        api::ContainerBounds(api::limit_ranges_in(objects.limit_ranges, job.id.job_namespace)).beside({});
    const api::ContainerResources worker = seen.view->auto_resources
                                               ? size_workers(seen, allowed, snapshot, observations, circumstances, job)
                                               : allowed.filled_in(seen.view->worker);
    job.worker_memory_bytes = worker.request_memory_bytes;
    note_held(job, worker, seen.priority_class, held[job.id.job_namespace]);
  }
  snapshot.quotas =
      view_quotas(objects.resource_quotas, held, circumstances.budgets.of_namespaces, circumstances.namespace_caps);
  for (Job& job : snapshot.jobs)
    for (const scheduler::Quota& quota : snapshot.quotas)
      if (quota.name == job.id.job_namespace) job.quota = quota.name;
}

api::ContainerResources SnapshotBuilder::size_workers(const SeenWorkers& seen, const api::ContainerBounds& allowed,
                                                      const scheduler::ClusterSnapshot& snapshot,
                                                      const Observations& observations,
                                                      const Circumstances& circumstances, Job& job) {
  const double now_seconds = snapshot.taken_at_seconds;
  SizedWorkers workers =
      view_sized_workers(seen.view->auto_resources->within(allowed), seen.chosen, seen.pods, seen.wanted, now_seconds);
  workers.job_uid = seen.view->uid;
  workers.peak_bytes = observations.worker_memory_bytes_of(job.id);
  if (workers.count == 0) {
    const auto guess = circumstances.guess ? circumstances.guess(seen.view->likeness) : std::nullopt;
    const auto learnt = guess ? guess->size : std::nullopt;
    workers.size = first_size(workers.bounds, seen.chosen, learnt, widest_room_millicores(snapshot, job));
    // Begun as guessed: with as much CPU, in workers of this size.
    if (learnt && learnt->millicores > 0)
      job.allocated_workers = static_cast<int>(std::min<std::int64_t>(
          job.max_workers, job.allocated_workers * learnt->millicores / workers.size.millicores));
  }
  if (!allowed.allow(allowed.filled_in(seen.in_force))) {
    const api::ContainerResources fitted = allowed.fitted(workers.bounds.resources(workers.size));
    workers.size = {fitted.request_millicores, fitted.request_memory_bytes};
    workers.refused = allowed.allow(workers.bounds.resources(workers.size));
  }
  job.worker_millicores = workers.size.millicores;
  const api::ContainerResources resources = resources_of(workers, seen.pods);
  sized_workers_[job.id] = std::move(workers);
  return resources;
}

const PodViews::Entries& SnapshotBuilder::view_pods(const kube::Store::Objects& objects, double now_seconds) {
  worker_times_.begin_round(now_seconds);
  PodViews::Entries& pods =
      pods_.of(objects, [this](PodView& view, const PodView* before) { worker_times_.settle(view, before); });
  if (worker_times_.was_set_back())
    for (auto& [key, entry] : pods) worker_times_.clip(entry.view);
  return pods;
}

scheduler::ClusterSnapshot SnapshotBuilder::build(const ClusterObjects& objects, const Observations& observations,
                                                  const EstimatorMemories& memories, const Circumstances& circumstances,
                                                  double now_seconds) {
  scheduler::ClusterSnapshot snapshot;
  snapshot.taken_at_seconds = now_seconds;
  const PodViews::Entries& pods = view_pods(objects.pods, now_seconds);
  const WorkersByPool workers = workers_by_pool(pods);
  const TrainersByJob trainers = trainers_by_job(pods);
  std::set<std::string> known_pools;
  std::set<std::string> planned;
  planned_feeders_.clear();
  sized_workers_.clear();
  likenesses_.clear();
  capped_.clear();
  const auto& worker_rules = worker_rules_.of(objects.pools);
  static const WorkerRules kNoRules{api::NodeRules(json()), {}};
  JobRules rules;
  std::vector<int> rules_of_jobs;
  std::vector<PodSpread> spread_of_jobs;
  std::vector<SeenWorkers> workers_of_jobs;
  static const json kNone;
  for (const auto& [key, entry] : training_jobs_.of(objects.training_jobs)) {
    const auto& [training_job, view] = entry;
    if (!view.ok() || view->deleting || view->finished) continue;
    const kube::ObjectPointer found = find(objects.jobs, *training_job);
    const TrainerJob trainer(found ? *found : kNone);
    Job job = view_job(*view, trainer);
    cap(circumstances, job);
    const WorkerRules* rules_of_job = &kNoRules;
    SeenWorkers seen{&*view};
    if (const kube::ObjectPointer object = own_pool(objects, *training_job)) {
      const api::DataWorkerPool pool(*object);
      rules_of_job = &worker_rules.at(pool.key()).view;
      const std::string uid = pool.uid();
      known_pools.insert(uid);
      seen = {&*view, pool.worker_size(), pool.worker_resources(), pool.replicas(), pool.priority_class()};
      if (const auto own = workers.find(uid); own != workers.end()) seen.pods = own->second;
      take_workers(seen, now_seconds, job);
    }
    const TrainerPods trainer_pods = trainers_of(trainers, trainer);
    job.running = is_running(*view, trainer, trainer_pods, job.allocated_workers);
    job.hosts =
        hosts_of(trainer_pods, job.ranks / std::max(view->trainer_replicas, 1), static_cast<int>(view->trainer_gpus));
    if (job.hosts.empty()) job.hosts = unseen_hosts(*view, job);
    std::vector<FeederPod> feeders = feeders_of(trainer_pods, view->uid);
    job.local_adjustable = sets_feeders(job, *view, feeders, circumstances);
    if (job.local_adjustable) {
      for (const FeederPod& pod : feeders) planned.insert(pod.uid);
      planned_feeders_[job.id] = std::move(feeders);
    }
    take_figures(observations, job);
    job.storage = storage_of(*training_job, circumstances.storages);
    if (const auto memory = memories.find(view->uid); memory != memories.end()) job.memory = memory->second;
    if (circumstances.guess) begin_as_guessed(*view, circumstances, job);
    likenesses_[job.id] = view->likeness;
    rules_of_jobs.push_back(rules.add(rules_of_job->nodes));
    spread_of_jobs.push_back({&rules_of_job->nodes, rules_of_job->spread});
    workers_of_jobs.push_back(std::move(seen));
    snapshot.jobs.push_back(std::move(job));
  }
  // Workers of jobs that are over count as other pods until they are gone: no plan counts on their room.
  snapshot.nodes = view_nodes(objects.nodes, pods, known_pools, planned,
                              {circumstances.cluster_cpu_percent, circumstances.free_cpu_percent}, circumstances.nodes,
                              pending_pods_, now_seconds);
  const std::vector<std::vector<bool>> closed = node_groups_.divide(rules, objects.nodes, snapshot.nodes);
  for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) snapshot.jobs[i].closed_groups = closed[rules_of_jobs[i]];
  set_spread(spread_of_jobs, objects.nodes, snapshot.nodes, snapshot.jobs);
  snapshot.budget_per_hour = circumstances.budgets.of_all;
  snapshot.storages = view_storages(circumstances.storages);
  bound_workers(workers_of_jobs, objects, observations, circumstances, snapshot);
  return snapshot;
}

}  // namespace sluice::observe
