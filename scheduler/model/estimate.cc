#include "scheduler/model/estimate.h"

namespace sluice::scheduler {

double Estimate::supply_ratio(double remote_cores, const Job& job, const Config& config) const {
  if (known) return (local_cores + efficiency() * remote_cores) / std::max(knee_cores, 1e-9);
  const double assumed_knee_cores =
      std::max(static_cast<double>(local_limit_millicores(job)) / 1000, worker_cores(job));
  return 1 - wait_share + config.remote_efficiency * remote_cores / assumed_knee_cores;
}

}  // namespace sluice::scheduler
