// When a trainer of several pods is started again as a whole: docs/designs/multi-node.md.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cmath>

#include "operator/api/trainer_job.h"
#include "operator/api/training_job.h"

namespace sluice::api {

// True if `job` has failed because a pod did, and another Job with all trainer pods follows it.
inline bool will_restart(const TrainingJobView& view, const TrainerJob& job) {
  return view.is_gang && !view.finished && job.failed_by_pods() && job.restarts() < view.backoff_limit;
}

// The time for which a failed `job` stays before the next Job takes its place, as the Job controller does with pods:
// 10 s, doubled by each restart before, 6 min at most. After ten minutes of running it is 10 s again. Both times that
// are compared are the Job controller's.
inline double restart_pause_seconds(const TrainerJob& job) {
  constexpr double kFirstSeconds = 10, kMostSeconds = 360, kRanWellSeconds = 600;
  const double failed = job.failed_at_seconds(), started = job.started_at_seconds();
  const bool ran_well = started > 0 && failed - started >= kRanWellSeconds;
  const double doublings = ran_well ? 0 : static_cast<double>(std::min<std::int64_t>(job.restarts(), 10));
  return std::min(kFirstSeconds * std::exp2(doublings), kMostSeconds);
}

// True from the failure of a gang's Job until the next one has pods. No other controller holds them back.
inline bool is_restarting(const TrainingJobView& view, const TrainerJob& job) {
  if (will_restart(view, job)) return true;
  return view.is_gang && view.restarts > 0 && !job.over() && !job.suspended() && job.active() == 0;
}

}  // namespace sluice::api
