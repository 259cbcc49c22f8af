#include "operator/observe/worker_times.h"

#include <algorithm>

namespace sluice::observe {

void WorkerTimes::begin_round(double now_seconds) {
  was_set_back_ = begun_ && now_seconds < now_seconds_;
  before_seconds_ = begun_ && !was_set_back_ ? std::optional(now_seconds_) : std::nullopt;
  now_seconds_ = now_seconds;
  begun_ = true;
}

double WorkerTimes::moved(double said_seconds) const {
  return std::min(std::max(said_seconds, before_seconds_.value_or(said_seconds)), now_seconds_);
}

void WorkerTimes::settle(PodView& view, const PodView* before) const {
  if (!view.is_worker) return;
  if (before != nullptr && before->uid != view.uid) before = nullptr;
  view.worker.created_at_seconds =
      before != nullptr ? before->worker.created_at_seconds : moved(view.worker.created_at_seconds);
  if (!view.worker.ready) return;
  const bool is_known =
      before != nullptr && before->worker.ready && before->said_ready_since_seconds == view.said_ready_since_seconds;
  view.worker.ready_since_seconds =
      is_known ? before->worker.ready_since_seconds : moved(view.worker.ready_since_seconds);
}

void WorkerTimes::clip(PodView& view) const {
  view.worker.created_at_seconds = std::min(view.worker.created_at_seconds, now_seconds_);
  view.worker.ready_since_seconds = std::min(view.worker.ready_since_seconds, now_seconds_);
}

}  // namespace sluice::observe
