// The measurements that count as a report to a tuner that compares configurations. Their windows do not overlap, and
// begin after the last change of the job's workers or local CPU.
//
// Source: Cachew (ATC'22), section 4.3: the clients' window is cleared whenever the set of workers changes, and
// collection pauses while the change takes effect.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

struct SteadyReport {
  double seconds_per_sample = 0;
  double queue_depth = 0;
};

class SteadyWindow {
 public:
  // A report is the mean of so many windows: the originals' windows of hundreds of batches are less noisy than a
  // scrape.
  explicit SteadyWindow(int windows_per_report) : windows_per_report_(windows_per_report) {}

  // The next report, if there is one.  REQUIRES: calls in the order of time
  std::optional<SteadyReport> next(const Job& job, double now_seconds);

 private:
  void start_over(double since_seconds);

  int windows_per_report_;
  int ready_workers_ = -1;
  std::int64_t local_millicores_ = 0;
  double since_seconds_ = 0;  // windows that begin earlier do not count
  int windows_ = 0;
  double seconds_per_sample_sum_ = 0;
  double queue_depth_sum_ = 0;
};

}  // namespace sluice::scheduler
