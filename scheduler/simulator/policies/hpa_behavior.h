// The replicas that the HorizontalPodAutoscaler sets: those it computes (hpa_replicas.h), stabilised and limited in
// speed.
//
// Source: Kubernetes documentation, "Horizontal Pod Autoscaling", sections "Configurable scaling behavior" and "Default
// behavior":
//   scale up    at once, by at most 100 % or 4 pods per 15 s, whichever is more
//   scale down  to the highest recommendation of the last 300 s, by at most 100 % per 15 s (that is: no limit)
//   a target with 0 replicas is switched off
//
// Thread safety: none. Bounded: recommendations and changes older than their window are dropped at every call.
#pragma once

#include <deque>

namespace sluice::scheduler {

// How often the controller computes replicas: --horizontal-pod-autoscaler-sync-period's default.
inline constexpr double kHpaSyncSeconds = 15;

struct HpaBehaviorConstants {
  double scale_down_stabilization_seconds = 300;
  double scale_up_percent = 100;
  int scale_up_pods = 4;
  double scale_up_period_seconds = 15;
};

class HpaBehavior {
 public:
  explicit HpaBehavior(const HpaBehaviorConstants& constants = {}) : constants_(constants) {}

  // The replicas to set. `current` is the number set before.
  // REQUIRES: 0 <= min <= max, calls in the order of time
  int next(double now_seconds, int current, int desired, int min, int max);

 private:
  struct At {
    double seconds = 0;
    int value = 0;
  };

  int stabilized(double now_seconds, int current, int desired);
  int most_after_growth(double now_seconds, int current) const;

  HpaBehaviorConstants constants_;
  std::deque<At> recommendations_;
  std::deque<At> changes_;  // of the replicas set: positive and negative
};

}  // namespace sluice::scheduler
