#include "scheduler/simulator/policies/hpa.h"

#include <algorithm>

#include "scheduler/simulator/policies/hpa_behavior.h"
#include "scheduler/simulator/policies/hpa_replicas.h"
#include "scheduler/simulator/policies/job_by_job.h"
#include "scheduler/simulator/policies/reading.h"

namespace sluice::scheduler {
namespace {

// Seconds of the window during which the worker was ready.
double ready_seconds_in_window(const Worker& worker, const Measurement& m) {
  if (!worker.ready) return 0;
  const double begin = std::max(m.window_end_seconds - m.window_seconds, worker.ready_since_seconds);
  return std::max(0.0, m.window_end_seconds - begin);
}

// CPU that a ready worker used while it was ready, all workers alike.
std::optional<double> used_millicores_each(const Job& job, const Measurement* m) {
  if (m == nullptr || !m->remote) return std::nullopt;
  double ready_seconds = 0;
  for (const Worker& worker : job.workers) ready_seconds += ready_seconds_in_window(worker, *m);
  if (ready_seconds <= 0) return std::nullopt;
  const double used = 1000 * m->remote->busy_cores * m->window_seconds / ready_seconds;
  // Workers that have left since worked in the window, too; none can have used more than its limit.
  return std::min(used, static_cast<double>(job.worker_millicores));
}

std::vector<HpaPod> pods_of(const Job& job, int replicas) {
  const Measurement* m = usable_measurement(job);
  const std::optional<double> used = used_millicores_each(job, m);
  std::vector<HpaPod> pods;
  for (const Worker& worker : job.workers) {
    if (worker.draining) continue;
    HpaPod pod{.running = !worker.node.empty(), .ready = worker.ready};
    pod.started_at_seconds = worker.created_at_seconds;
    pod.ready_changed_at_seconds = worker.ready ? worker.ready_since_seconds : worker.created_at_seconds;
    pod.request_millicores = job.worker_millicores;
    if (m != nullptr && ready_seconds_in_window(worker, *m) > 0) {
      pod.used_millicores = used;
      pod.metric_at_seconds = m->window_end_seconds;
      pod.metric_window_seconds = m->window_seconds;
    }
    pods.push_back(pod);
  }
  // Replicas that were asked for and found no room are pending pods.
  HpaPod pending{.running = false};
  pending.request_millicores = job.worker_millicores;
  if (static_cast<int>(pods.size()) < replicas) pods.resize(replicas, pending);
  return pods;
}

class HpaController {
 public:
  Request request(const Job& job, const Scene& scene) {
    const int min = std::max(1, job.min_workers);
    const int max = std::max(min, job.max_workers);
    replicas_ = std::max(replicas_, min);
    if (scene.now_seconds >= synced_at_seconds_ + kHpaSyncSeconds) {
      synced_at_seconds_ = scene.now_seconds;
      const std::optional<int> desired =
          hpa_replicas_by_cpu(replicas_, pods_of(job, replicas_), scene.now_seconds, constants_);
      if (desired) replicas_ = behavior_.next(scene.now_seconds, replicas_, *desired, min, max);
    }
    return {.workers = replicas_};
  }

 private:
  HpaConstants constants_;
  HpaBehavior behavior_;
  int replicas_ = 0;
  double synced_at_seconds_ = -kHpaSyncSeconds;
};

}  // namespace

std::unique_ptr<Policy> make_hpa_policy(WorkerNodes worker_nodes) {
  const bool everywhere = worker_nodes == WorkerNodes::kAll;
  return std::make_unique<JobByJobPolicy<HpaController>>(
      everywhere ? "hpa-everywhere" : "hpa", Turns::kOneEach, [] { return HpaController(); }, worker_nodes);
}

}  // namespace sluice::scheduler
