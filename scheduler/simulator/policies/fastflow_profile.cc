#include "scheduler/simulator/policies/fastflow_profile.h"

#include <algorithm>

#include "scheduler/simulator/policies/reading.h"

namespace sluice::scheduler {

bool fastflow_offloads(const FastFlowProfile& profile, const FastFlowConstants& constants) {
  return profile.gpu_samples_per_second >= constants.offload_above * profile.local_samples_per_second;
}

int fastflow_workers(const FastFlowProfile& profile, const FastFlowConstants& constants) {
  const double gap = profile.gpu_samples_per_second - profile.local_samples_per_second;
  return std::max(1, whole_count(gap / profile.worker_samples_per_second - constants.worker_slack));
}

}  // namespace sluice::scheduler
