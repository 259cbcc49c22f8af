#include "scheduler/simulator/policies/pecan.h"

#include <algorithm>
#include <cmath>

#include "scheduler/simulator/policies/job_by_job.h"
#include "scheduler/simulator/policies/reading.h"
#include "scheduler/simulator/policies/steady_window.h"

namespace sluice::scheduler {
namespace {

class PecanController {
 public:
  PecanController(int worker_millicores, const PecanConstants& constants, int windows_per_report)
      : worker_millicores_(worker_millicores),
        max_local_(constants.max_local),
        window_(windows_per_report),
        tuner_(constants) {}

  Request request(const Job& job, const Scene& scene) {
    const double size = static_cast<double>(worker_millicores_) / static_cast<double>(job.worker_millicores);
    const int pods_each = std::max(1, static_cast<int>(std::lround(size)));
    if (const std::optional<SteadyReport> report = window_.next(job, scene.now_seconds)) {
      const bool remote_available = job.allocated_workers >= requested_workers_;
      const PecanTarget target = tuner_.target();
      // The local workers are processes of the trainer's own pods: they are there as soon as they are asked for.
      const int remote = ready_workers(job) / pods_each;
      had_remote_ |= remote > 0;
      if (had_remote_) tuner_.report({remote, target.local, report->seconds_per_sample, remote_available});
    }
    const PecanTarget target = tuner_.target();
    requested_workers_ = target.remote * pods_each;
    std::vector<LocalCpu> local = gpu_proportional(job, scene.nodes);
    for (LocalCpu& cpu : local) {
      cpu.request_millicores = cpu.limit_millicores = cpu.request_millicores * target.local / max_local_;
    }
    return {.workers = requested_workers_, .local = std::move(local)};
  }

 private:
  int worker_millicores_;
  int max_local_;
  SteadyWindow window_;
  PecanTuner tuner_;
  int requested_workers_ = 0;
  bool had_remote_ = false;
};

}  // namespace

std::unique_ptr<Policy> make_pecan_policy(int remote_worker_millicores, const PecanConstants& constants,
                                          int windows_per_report) {
  return std::make_unique<JobByJobPolicy<PecanController>>("pecan", Turns::kJobByJob, [=] {
    return PecanController(remote_worker_millicores, constants, windows_per_report);
  });
}

}  // namespace sluice::scheduler
