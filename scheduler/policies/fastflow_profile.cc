#include "scheduler/policies/fastflow_profile.h"

#include <algorithm>

#include "scheduler/policies/reading.h"

namespace sluice::scheduler {

bool fastflow_offloads(const FastFlowProfile& profile, const FastFlowConstants& constants) {
  return profile.gpu_samples_per_second >= constants.offload_above * profile.local_samples_per_second;
}

int fastflow_workers(const FastFlowProfile& profile, const FastFlowConstants& constants) {
  const double gap = profile.gpu_samples_per_second - profile.local_samples_per_second;
  return std::max(1, whole_count(gap / profile.worker_samples_per_second - constants.worker_slack));
}

double fastflow_offload_ratio(const FastFlowProfile& profile, int workers, const FastFlowConstants& constants) {
  const double gap = profile.gpu_samples_per_second - profile.local_samples_per_second;
  const double upper = workers * profile.worker_samples_per_second;
  const double lower = gap * (1 + constants.offload_overhead);
  if (lower < upper) return std::min(1.0, upper / profile.gpu_samples_per_second);
  return upper / (profile.local_samples_per_second + upper);
}

}  // namespace sluice::scheduler
