#include "scheduler/simulator/policies/hpa_behavior.h"

#include <algorithm>
#include <cmath>

namespace sluice::scheduler {

int HpaBehavior::stabilized(double now_seconds, int current, int desired) {
  // A controller that has just started does not know earlier recommendations; it takes the present number for them.
  if (recommendations_.empty()) recommendations_.push_back({now_seconds, current});
  while (!recommendations_.empty() &&
         recommendations_.front().seconds <= now_seconds - constants_.scale_down_stabilization_seconds) {
    recommendations_.pop_front();
  }
  int highest = desired;
  for (const At& recommendation : recommendations_) highest = std::max(highest, recommendation.value);
  recommendations_.push_back({now_seconds, desired});
  return std::min(std::max(current, desired), highest);
}

int HpaBehavior::most_after_growth(double now_seconds, int current) const {
  int at_start_of_period = current;
  for (const At& change : changes_) {
    if (change.seconds > now_seconds - constants_.scale_up_period_seconds) at_start_of_period -= change.value;
  }
  const double by_percent = std::ceil(at_start_of_period * (1 + constants_.scale_up_percent / 100));
  const int limit = std::max(at_start_of_period + constants_.scale_up_pods, static_cast<int>(by_percent));
  return std::max(limit, current);
}

int HpaBehavior::next(double now_seconds, int current, int desired, int min, int max) {
  if (current == 0 && min != 0) return 0;
  int next = current;
  if (current > max) {
    next = max;
  } else if (current < min) {
    next = min;
  } else {
    next = std::clamp(stabilized(now_seconds, current, desired), min, max);
    if (next > current) next = std::min(next, most_after_growth(now_seconds, current));
  }
  while (!changes_.empty() && changes_.front().seconds <= now_seconds - constants_.scale_up_period_seconds) {
    changes_.pop_front();
  }
  if (next != current) changes_.push_back({now_seconds, next - current});
  return next;
}

}  // namespace sluice::scheduler
