// When measurements of a job come, and whether an old one is late or stale.
//
// A measurement is stale once newer ones should have come. Its age alone does not tell: where metrics take two minutes
// through a pipeline, every one of them is old, the newest too. So an old one counts while others
// follow it at their usual pace.
//
// Thread safety: plain values.
#pragma once

#include "scheduler/model/config.h"

namespace sluice::scheduler {

struct Arrivals {
  double newest_end_seconds = 0;  // end of the newest window that was seen, used or not; 0: none was
  double seen_at_seconds = 0;     // the decision that saw it first
  double step_seconds = 0;        // from the end of the window before it; 0: there was none, or the clock went back

  void take(double window_end_seconds, double now_seconds);

  // Whether the newest measurement is older than Config::max_age_seconds, and counts all the same: no older than
  // max_late_seconds, and the next one is not overdue.
  bool are_late_as_ever(double now_seconds, const Config& config) const;

  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

}  // namespace sluice::scheduler
