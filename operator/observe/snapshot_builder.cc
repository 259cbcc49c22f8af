#include "operator/observe/snapshot_builder.h"

#include <nlohmann/json.hpp>
#include <set>

#include "operator/names.h"
#include "operator/observe/cluster_view.h"
#include "operator/observe/fields.h"
#include "operator/observe/training_job_view.h"
#include "src/kube/timestamp.h"

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

std::string controller_uid(const json& object) {
  const json& references = field(object, "/metadata/ownerReferences");
  if (!references.is_array()) return "";
  for (const json& reference : references)
    if (boolean_field(reference, "/controller")) return text_field(reference, "/uid");
  return "";
}

// Unix seconds; 0 where the object does not say.
double time_field(const json& object, std::string_view pointer) {
  const auto time = kube::parse_time(text_field(object, pointer));
  return time ? std::chrono::duration<double>(time->time_since_epoch()).count() : 0;
}

double ready_since(const json& pod) {
  for (const json& condition : field(pod, "/status/conditions"))
    if (text_field(condition, "/type") == "Ready") return time_field(condition, "/lastTransitionTime");
  return 0;
}

Worker view_worker(const json& pod) {
  Worker worker;
  worker.name = text_field(pod, "/metadata/name");
  worker.node = text_field(pod, "/spec/nodeName");
  worker.ready = condition_is_true(pod, "Ready");
  worker.created_at_seconds = time_field(pod, "/metadata/creationTimestamp");
  if (worker.ready) worker.ready_since_seconds = ready_since(pod);
  worker.draining = !field(pod, "/metadata/deletionTimestamp").is_null();
  return worker;
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

// Pods by the uid of the pool that controls them.
std::multimap<std::string, kube::ObjectPointer> workers_by_pool(const kube::Store::Objects& pods) {
  std::multimap<std::string, kube::ObjectPointer> workers;
  for (const auto& [key, pod] : pods) {
    if (text_field(*pod, "/metadata/labels/sluice.dev~1component") != control::kWorkerComponent) continue;
    const std::string phase = text_field(*pod, "/status/phase");
    if (phase != "Failed" && phase != "Succeeded") workers.emplace(controller_uid(*pod), pod);
  }
  return workers;
}

}  // namespace

kube::ObjectPointer own_pool(const ClusterObjects& objects, const json& training_job) {
  return find(objects.pools, training_job);
}

scheduler::ClusterSnapshot build_snapshot(const ClusterObjects& objects, const Observations& observations,
                                          const EstimatorMemories& memories, int cluster_cpu_percent,
                                          double now_seconds) {
  scheduler::ClusterSnapshot snapshot;
  snapshot.taken_at_seconds = now_seconds;
  const auto workers = workers_by_pool(objects.pods);
  std::set<std::string> known_pools;
  static const json kNone;
  for (const auto& [key, training_job] : objects.training_jobs) {
    const auto view = view_training_job(*training_job);
    if (!view.ok() || view->deleting || view->finished) continue;
    const kube::ObjectPointer trainer = find(objects.jobs, *training_job);
    const json& trainer_job = trainer ? *trainer : kNone;
    Job job = view_job(*view, trainer_job);
    if (const kube::ObjectPointer pool = own_pool(objects, *training_job)) {
      const std::string uid = text_field(*pool, "/metadata/uid");
      known_pools.insert(uid);
      job.allocated_workers = static_cast<int>(integer_field(*pool, "/spec/replicas"));
      const auto [first, last] = workers.equal_range(uid);
      for (auto entry = first; entry != last; ++entry) job.workers.push_back(view_worker(*entry->second));
    }
    job.running = is_running(*view, trainer_job, job.allocated_workers);
    job.observation = observations.of(job.id);
    if (const auto memory = memories.find(view->uid); memory != memories.end()) job.memory = memory->second;
    snapshot.jobs.push_back(std::move(job));
  }
  // Workers of jobs that are over count as others' until they are gone: nobody else plans with their room.
  const auto is_worker = [&](const json& pod) { return known_pools.contains(controller_uid(pod)); };
  snapshot.nodes = view_nodes(objects.nodes, objects.pods, is_worker, cluster_cpu_percent);
  return snapshot;
}

}  // namespace sluice::observe
