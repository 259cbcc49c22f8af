#include "operator/observe/snapshot_builder.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "operator/observe/cluster_view.h"
#include "operator/observe/fields.h"

namespace sluice::observe {

using nlohmann::json;

namespace {

using scheduler::Job;
using scheduler::Worker;

kube::ObjectPointer find(const kube::Store::Objects& objects, const json& owner) {
  const auto found = objects.find(kube::key_of(owner));
  if (found == objects.end() || !controlled_by(*found->second, owner)) return nullptr;
  return found->second;
}

// What the spec and the trainer say; not yet what is allocated and measured.
Job view_job(const TrainingJobView& view, const json& trainer) {
  Job job;
  job.id = {view.name_space, view.name};
  job.gpus = static_cast<int>(view.trainer_gpus) * view.trainer_replicas;
  job.ranks = std::max(job.gpus, view.trainer_replicas);
  job.weight = view.weight;
  job.priority = view.priority;
  job.mode = view.mode;
  // A trainer that was started without a feeder cannot use workers, whatever the mode is now.
  if (text_field(trainer, "/metadata/annotations/sluice.dev~1feeder") == "false") job.mode = Mode::kOff;
  job.placement = view.placement;
  job.min_workers = view.min_workers;
  job.max_workers = view.max_workers;
  job.worker_millicores = view.worker_cpu_milli;
  // Without a limit the feeder may use more, while its node is idle; only the request is its own.
  const std::int64_t feeder = view.feeder_cpu_limit_milli > 0 ? view.feeder_cpu_limit_milli : view.feeder_cpu_milli;
  job.hosts = {{.node = "",
                .ranks = job.ranks,
                .gpus = job.gpus,
                .request_millicores = view.feeder_cpu_milli * view.trainer_replicas,
                .limit_millicores = feeder * view.trainer_replicas}};
  return job;
}

// Whether the trainer trains. One that has workers has trained: while its pod, or only its feeder, is being restarted
// it is not ready, but taking its workers away for that time would cost their start once more.
bool is_running(const TrainingJobView& view, const json& trainer, int allocated_workers) {
  const bool over = condition_is_true(trainer, "Complete") || condition_is_true(trainer, "Failed");
  if (view.suspend || over) return false;
  if (integer_field(trainer, "/status/ready") > 0) return true;
  return integer_field(trainer, "/status/active") > 0 && allocated_workers > 0;
}

// By the uid of the pool that controls them; in the order of their names.
using WorkersByPool = std::unordered_map<std::string_view, std::vector<const Worker*>>;

WorkersByPool workers_by_pool(const PodViews::Entries& pods) {
  WorkersByPool workers;
  for (const auto& [key, pod] : pods)
    if (pod.view.is_worker && !pod.view.finished) workers[pod.view.controller_uid].push_back(&pod.view.worker);
  return workers;
}

}  // namespace

kube::ObjectPointer own_pool(const ClusterObjects& objects, const json& training_job) {
  return find(objects.pools, training_job);
}

scheduler::ClusterSnapshot SnapshotBuilder::build(const ClusterObjects& objects, const Observations& observations,
                                                  const EstimatorMemories& memories, int cluster_cpu_percent,
                                                  double now_seconds) {
  scheduler::ClusterSnapshot snapshot;
  snapshot.taken_at_seconds = now_seconds;
  const PodViews::Entries& pods = pods_.of(objects.pods);
  const WorkersByPool workers = workers_by_pool(pods);
  std::set<std::string> known_pools;
  static const json kNone;
  for (const auto& [key, entry] : training_jobs_.of(objects.training_jobs)) {
    const auto& [training_job, view] = entry;
    if (!view.ok() || view->deleting || view->finished) continue;
    const kube::ObjectPointer trainer = find(objects.jobs, *training_job);
    const json& trainer_job = trainer ? *trainer : kNone;
    Job job = view_job(*view, trainer_job);
    if (const kube::ObjectPointer pool = own_pool(objects, *training_job)) {
      const std::string uid = text_field(*pool, "/metadata/uid");
      known_pools.insert(uid);
      job.allocated_workers = static_cast<int>(integer_field(*pool, "/spec/replicas"));
      if (const auto own = workers.find(uid); own != workers.end())
        for (const Worker* worker : own->second) job.workers.push_back(*worker);
    }
    job.running = is_running(*view, trainer_job, job.allocated_workers);
    job.observation = observations.of(job.id);
    if (const auto memory = memories.find(view->uid); memory != memories.end()) job.memory = memory->second;
    snapshot.jobs.push_back(std::move(job));
  }
  // Workers of jobs that are over count as others' until they are gone: nobody else plans with their room.
  snapshot.nodes = view_nodes(objects.nodes, pods, known_pools, cluster_cpu_percent);
  return snapshot;
}

}  // namespace sluice::observe
