#include "scheduler/simulator/policies/cachew_tuner.h"

#include <algorithm>
#include <cmath>

namespace sluice::scheduler {

int CachewTuner::report(const CachewReport& report) {
  history_.push_back(report);
  if (history_.size() > constants_.history_reports) history_.pop_front();
  // Until the last change is effective, reports say nothing about it.
  if (report.workers != target_) return target_;
  target_ = std::clamp(scaling_ ? scale(report) : check_stability(report), 1, constants_.max_workers);
  return target_;
}

int CachewTuner::scale(const CachewReport& now) {
  if (history_.size() == 1) return now.workers + 1;
  const auto other = std::find_if(history_.rbegin(), history_.rend(),
                                  [&](const CachewReport& past) { return past.workers != now.workers; });
  if (other == history_.rend()) return converge_at(now);

  const CachewReport before = *other;
  const double improvement = 1 - now.batch_seconds / before.batch_seconds;
  if (std::abs(improvement) > constants_.discard_above) return target_;
  const bool added = before.workers < now.workers;
  if (added && improvement > constants_.scale_up_above) return now.workers + 1;
  if (!added && improvement > -constants_.scale_down_above && now.workers > 1) return now.workers - 1;
  return converge_at(before);
}

int CachewTuner::converge_at(const CachewReport& report) {
  converged_ = report;
  scaling_ = false;
  stable_reports_ = 0;
  return report.workers;
}

int CachewTuner::check_stability(const CachewReport& now) {
  if (++stable_reports_ <= constants_.recheck_reports) return target_;
  stable_reports_ = 0;
  const double queue = now.queue_depth / converged_.queue_depth;
  const double batch_time = now.batch_seconds / converged_.batch_seconds;
  if (!std::isfinite(queue)) return target_;
  if (queue > constants_.queue_growth && converged_.workers > 1) {
    scaling_ = true;
    return converged_.workers - 1;
  }
  if (batch_time > constants_.batch_time_growth) {
    scaling_ = true;
    return converged_.workers + 1;
  }
  return target_;
}

}  // namespace sluice::scheduler
