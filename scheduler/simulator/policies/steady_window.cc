#include "scheduler/simulator/policies/steady_window.h"

#include "scheduler/simulator/policies/reading.h"

namespace sluice::scheduler {

void SteadyWindow::start_over(double since_seconds) {
  since_seconds_ = since_seconds;
  windows_ = 0;
  seconds_per_sample_sum_ = 0;
  queue_depth_sum_ = 0;
}

std::optional<SteadyReport> SteadyWindow::next(const Job& job, double now_seconds) {
  const int ready = ready_workers(job);
  const std::int64_t local = local_limit_millicores(job);
  if (ready != ready_workers_ || local != local_millicores_) {
    ready_workers_ = ready;
    local_millicores_ = local;
    start_over(now_seconds);
  }
  const Measurement* m = usable_measurement(job);
  const bool counts = m != nullptr && m->queue && m->samples_per_second > 0;
  if (!counts || m->window_end_seconds - m->window_seconds < since_seconds_) {
    return std::nullopt;
  }
  since_seconds_ = m->window_end_seconds;
  ++windows_;
  seconds_per_sample_sum_ += 1 / m->samples_per_second;
  queue_depth_sum_ += m->queue->depth;
  if (windows_ < windows_per_report_) return std::nullopt;
  const SteadyReport report{seconds_per_sample_sum_ / windows_, queue_depth_sum_ / windows_};
  start_over(since_seconds_);
  return report;
}

}  // namespace sluice::scheduler
