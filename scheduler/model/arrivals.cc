#include "scheduler/model/arrivals.h"

#include <algorithm>

namespace sluice::scheduler {

void Arrivals::take(double window_end_seconds, double now_seconds) {
  if (window_end_seconds == newest_end_seconds) return;
  const double step = newest_end_seconds > 0 ? window_end_seconds - newest_end_seconds : 0;
  *this = {window_end_seconds, now_seconds, std::max(step, 0.0)};
}

bool Arrivals::are_late_as_ever(double now_seconds, const Config& config) const {
  constexpr double kOverdueSteps = 2;
  if (step_seconds <= 0 || now_seconds - newest_end_seconds > config.max_late_seconds) return false;
  return now_seconds - seen_at_seconds <= std::max(config.max_age_seconds, kOverdueSteps * step_seconds);
}

}  // namespace sluice::scheduler
