#include "scheduler/simulator/policies/cachew.h"

#include <algorithm>
#include <cmath>

#include "scheduler/simulator/policies/job_by_job.h"
#include "scheduler/simulator/policies/reading.h"
#include "scheduler/simulator/policies/steady_window.h"

namespace sluice::scheduler {
namespace {

class CachewController {
 public:
  CachewController(int worker_millicores, const CachewConstants& constants, int windows_per_report)
      : worker_millicores_(worker_millicores), window_(windows_per_report), tuner_(constants) {}

  Request request(const Job& job, const Scene& scene) {
    const double size = static_cast<double>(worker_millicores_) / static_cast<double>(job.worker_millicores);
    const int pods_each = std::max(1, static_cast<int>(std::lround(size)));
    const std::optional<SteadyReport> report = window_.next(job, scene.now_seconds);
    const int ready = ready_workers(job);
    // A worker of which a part found no room is not in force.
    if (report && ready % pods_each == 0) {
      tuner_.report({ready / pods_each, report->seconds_per_sample, report->queue_depth});
    }
    return {.workers = tuner_.target() * pods_each};
  }

 private:
  int worker_millicores_;
  SteadyWindow window_;
  CachewTuner tuner_;
};

}  // namespace

std::unique_ptr<Policy> make_cachew_policy(const CachewWorker& worker, const CachewConstants& constants,
                                           int windows_per_report) {
  return std::make_unique<JobByJobPolicy<CachewController>>(worker.policy_name, Turns::kJobByJob, [=] {
    return CachewController(worker.millicores, constants, windows_per_report);
  });
}

}  // namespace sluice::scheduler
