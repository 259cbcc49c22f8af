#include "scheduler/simulator/policies/keda.h"

#include <algorithm>

#include "scheduler/simulator/policies/hpa_behavior.h"
#include "scheduler/simulator/policies/hpa_replicas.h"
#include "scheduler/simulator/policies/job_by_job.h"
#include "scheduler/simulator/policies/reading.h"

namespace sluice::scheduler {
namespace {

class KedaController {
 public:
  explicit KedaController(const KedaConstants& constants) : constants_(constants) {}

  Request request(const Job& job, const Scene& scene) {
    const double now = scene.now_seconds;
    const Measurement* m = usable_measurement(job);
    // Without the metric the HPA does nothing.
    if (m != nullptr && m->queue) {
      const double backlog = std::max(0.0, m->queue->capacity - m->queue->depth);
      if (backlog > 0) active_at_seconds_ = now;
      if (replicas_ == 0 || now > active_at_seconds_ + constants_.cooldown_seconds) {
        activate(job, now);
      } else if (now >= synced_at_seconds_ + kHpaSyncSeconds) {
        synced_at_seconds_ = now;
        const int desired =
            hpa_replicas_by_average_value(replicas_, backlog, constants_.batches_per_worker, constants_.tolerance);
        replicas_ = behavior_.next(now, replicas_, desired, std::max(1, job.min_workers),
                                   std::max({1, job.min_workers, job.max_workers}));
      }
    }
    return {.workers = replicas_};
  }

 private:
  // Between zero and one.
  void activate(const Job& job, double now_seconds) {
    if (now_seconds < polled_at_seconds_ + constants_.polling_seconds) return;
    polled_at_seconds_ = now_seconds;
    const bool active = active_at_seconds_ == now_seconds;
    replicas_ = std::max(active ? 1 : 0, job.min_workers);
  }

  KedaConstants constants_;
  HpaBehavior behavior_;
  int replicas_ = 0;
  double active_at_seconds_ = -1e18;
  double polled_at_seconds_ = -1e18;
  double synced_at_seconds_ = -1e18;
};

}  // namespace

std::unique_ptr<Policy> make_keda_policy(const KedaConstants& constants, WorkerNodes worker_nodes) {
  const bool everywhere = worker_nodes == WorkerNodes::kAll;
  return std::make_unique<JobByJobPolicy<KedaController>>(
      everywhere ? "keda-everywhere" : "keda", Turns::kOneEach, [constants] { return KedaController(constants); },
      worker_nodes);
}

}  // namespace sluice::scheduler
