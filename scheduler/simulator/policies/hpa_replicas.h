// How many replicas Kubernetes' HorizontalPodAutoscaler asks for at one sync, before its behaviour rules
// (hpa_behavior.h).
//
// Source: Kubernetes documentation, "Horizontal Pod Autoscaling", section "Algorithm details"; the readiness rules
// follow kube-controller-manager's defaults for --horizontal-pod-autoscaler-{tolerance, cpu-initialization-period,
// initial-readiness-delay}.
//
//   ratio    = utilisation / target, utilisation = whole percent of the requests of the pods that count
//   desired  = ceil(ratio x pods that count), the present number while |ratio - 1| <= tolerance
//   Pods being deleted or failed do not exist. Pods pending, or not ready yet, or without a full metric window since
//   they became ready, are "unready"; running pods without a metric are "missing".
//   unready  pods count as idle when scaling up, and not at all when scaling down
//   missing  pods count as idle when scaling up, and as using all of their request when scaling down
//   If these assumptions turn the direction around, nothing is changed.
//
// Thread safety: pure functions on values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::scheduler {

struct HpaConstants {
  int target_cpu_percent = 80;  // the baseline of Cachew's evaluation: kubectl autoscale --cpu-percent=80
  double tolerance = 0.1;
  double cpu_initialization_seconds = 300;
  double initial_readiness_delay_seconds = 30;
};

struct HpaPod {
  bool running = true;  // false: pending
  bool ready = false;
  double started_at_seconds = 0;
  double ready_changed_at_seconds = 0;  // last change of `ready`
  std::int64_t request_millicores = 0;
  std::optional<double> used_millicores;  // over the metric window; none: the metrics server has nothing on it
  double metric_at_seconds = 0;           // end of that window
  double metric_window_seconds = 0;
};

// By CPU utilisation. None: no metric for any pod that counts, so the HPA leaves the number alone.
std::optional<int> hpa_replicas_by_cpu(int current, const std::vector<HpaPod>& pods, double now_seconds,
                                       const HpaConstants& constants);

// By an external metric of type AverageValue, as KEDA's scalers use it: one replica for each `target_per_replica`.
// REQUIRES: metric >= 0, target_per_replica > 0
int hpa_replicas_by_average_value(int current, double metric, double target_per_replica, double tolerance);

}  // namespace sluice::scheduler
