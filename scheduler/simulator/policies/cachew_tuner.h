// Cachew's autoscaling of one job: add a worker, see whether batches come faster, go on or go back.
//
// Source: Graur et al., "Cachew: Machine Learning Input Data Processing as a Service", USENIX ATC'22, section 4.3. The
// paper leaves the state machine and constants open: they are those of the authors' release (scaling policy "EASL"). A
// report is one window of batches measured by the clients under an unchanged set of workers.
//
//   p = most recent report with another number of workers;  r = 1 - batch_time / p.batch_time
//   scaling, after an addition    r > up:    one more;           else back to p, converged
//   scaling, after a removal      r > -down: one less (not < 1); else back to p, converged
//   converged, every `recheck_reports`  queue much longer than at convergence: one less, scaling again
//                                       batches much slower than at convergence: one more, scaling again
// One worker a step: the time to converge is linear in the number of workers.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <deque>

namespace sluice::scheduler {

struct CachewConstants {
  double scale_up_above = 0.03;  // paper; the release has 0.07, its experiments 0.03 and 0
  double scale_down_above = 0.03;
  double discard_above = 1.2;  // a relative improvement beyond this is noise
  int recheck_reports = 10;    // paper; the release has 20
  double queue_growth = 1.4;   // paper; the release has 1.5
  double batch_time_growth = 1.5;
  int max_workers = 100;
  std::size_t history_reports = 20;
};

struct CachewReport {
  int workers = 0;
  double batch_seconds = 0;  // mean time from one batch to the next
  double queue_depth = 0;    // mean length of the clients' prefetch buffer
};

class CachewTuner {
 public:
  explicit CachewTuner(const CachewConstants& constants = {}) : constants_(constants) {}

  // Takes a report in and says how many workers the job should have. A job starts with one.
  int report(const CachewReport& report);

  int target() const { return target_; }
  bool scaling() const { return scaling_; }

 private:
  int scale(const CachewReport& now);
  int check_stability(const CachewReport& now);
  int converge_at(const CachewReport& report);

  CachewConstants constants_;
  std::deque<CachewReport> history_;
  CachewReport converged_;
  int target_ = 1;
  int stable_reports_ = 0;
  bool scaling_ = true;
};

}  // namespace sluice::scheduler
