#include "scheduler/simulator/policies/hpa_replicas.h"

#include <algorithm>
#include <cmath>

#include "scheduler/simulator/policies/reading.h"

namespace sluice::scheduler {
namespace {

struct Groups {
  std::vector<const HpaPod*> counted;
  std::vector<const HpaPod*> unready;
  std::vector<const HpaPod*> missing;
};

// Whether the pod's sample would mislead: start-up burns CPU that says nothing about the load.
bool sample_is_premature(const HpaPod& pod, double now_seconds, const HpaConstants& constants) {
  if (now_seconds < pod.started_at_seconds + constants.cpu_initialization_seconds) {
    return !pod.ready || pod.metric_at_seconds < pod.ready_changed_at_seconds + pod.metric_window_seconds;
  }
  const bool never_ready =
      pod.ready_changed_at_seconds < pod.started_at_seconds + constants.initial_readiness_delay_seconds;
  return !pod.ready && never_ready;
}

Groups group(const std::vector<HpaPod>& pods, double now_seconds, const HpaConstants& constants) {
  Groups groups;
  for (const HpaPod& pod : pods) {
    if (!pod.running) {
      groups.unready.push_back(&pod);
    } else if (!pod.used_millicores) {
      groups.missing.push_back(&pod);
    } else if (sample_is_premature(pod, now_seconds, constants)) {
      groups.unready.push_back(&pod);
    } else {
      groups.counted.push_back(&pod);
    }
  }
  return groups;
}

// The controller computes in whole percent.
double ratio_to_target(double used_millicores, double requested_millicores, int target_percent) {
  return std::floor(100 * used_millicores / requested_millicores) / target_percent;
}

bool within(double ratio, double tolerance) { return ratio >= 1 - tolerance && ratio <= 1 + tolerance; }

}  // namespace

std::optional<int> hpa_replicas_by_cpu(int current, const std::vector<HpaPod>& pods, double now_seconds,
                                       const HpaConstants& constants) {
  // 1. Which pods say something about the load.
  const Groups groups = group(pods, now_seconds, constants);
  if (groups.counted.empty()) return std::nullopt;

  // 2. The ratio by these pods.
  double used = 0;
  double requested = 0;
  for (const HpaPod* pod : groups.counted) {
    used += *pod->used_millicores;
    requested += static_cast<double>(pod->request_millicores);
  }
  const double ratio = ratio_to_target(used, requested, constants.target_cpu_percent);
  std::size_t count = groups.counted.size();
  const bool up_with_unready = ratio > 1 && !groups.unready.empty();
  if (!up_with_unready && groups.missing.empty()) {
    if (within(ratio, constants.tolerance)) return current;
    return whole_count(ratio * static_cast<double>(count));
  }

  // 3. The others, assumed so that the step becomes smaller.
  for (const HpaPod* pod : groups.missing) {
    const auto request = static_cast<double>(pod->request_millicores);
    requested += request;
    if (ratio < 1) used += request * std::max(100, constants.target_cpu_percent) / 100;
  }
  count += groups.missing.size();
  if (up_with_unready) {
    for (const HpaPod* pod : groups.unready) requested += static_cast<double>(pod->request_millicores);
    count += groups.unready.size();
  }

  // 4. A step only if the direction is still the same.
  const double cautious = ratio_to_target(used, requested, constants.target_cpu_percent);
  if (within(cautious, constants.tolerance) || (ratio < 1) != (cautious < 1)) return current;
  const int desired = whole_count(cautious * static_cast<double>(count));
  const bool turned_around = cautious < 1 ? desired > current : desired < current;
  return turned_around ? current : desired;
}

int hpa_replicas_by_average_value(int current, double metric, double target_per_replica, double tolerance) {
  if (current > 0 && within(metric / (target_per_replica * current), tolerance)) return current;
  return whole_count(metric / target_per_replica);
}

}  // namespace sluice::scheduler
