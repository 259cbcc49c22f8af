// Whether full hosts slow trainers down, as all jobs of the cluster show together: the guard of crowded hosts.
//
// interference.h and neighbour_guard.h compare one trainer with itself, before and after feeders grew. A trainer that
// starts on a full host has no calmer time to be compared with. But hosts fill and empty as jobs come and go, and each
// trainer shows a little of what that does to its steps.
//
//   load      of a trainer's fullest node: busy cores of the other jobs' feeders and of all data workers / room there
//   job       log(computing seconds per batch) against load, both less the means of the job's last windows:
//             so jobs of any size can be put together, and slow changes of a job's own work count for little
//   cluster   the slope of least squares through the deviations of all jobs
//
// A trainer's own feeders are left out: samples that are larger cost both them and the trainer more.
//
// Thread safety: plain values.
#pragma once

#include "scheduler/model/config.h"

namespace sluice::scheduler {

// What the windows of all jobs have shown. Every job carries it in its memory, so that it outlives each of them.
struct Crowding {
  double through_seconds = 0;  // end of the newest window in it
  double windows = 0;          // old ones fade: all sums are halved at 4,000
  double load_squares = 0;     // of the deviations, summed up
  double load_fourths = 0;     // their fourth powers
  double compute_squares = 0;
  double products = 0;  // of both deviations
  bool is_proven = false;

  // How many windows tell something: of those at the usual load, any number tells nothing. REQUIRES: load_squares > 0
  double telling_windows() const;

  // REQUIRES of all three: load_squares > 0
  double slope() const;
  double standard_error() const;  // of the slope
  double rise() const;            // a full host makes steps longer by this share

  // Proven is a slope above Config::interference_above by four standard errors, until it is below by as many. At least
  // twenty windows must tell, as a step may be long for any reason.
  void judge(const Config& config);

  friend bool operator==(const Crowding&, const Crowding&) = default;
};

// A job's own means, from which its windows deviate.
struct CrowdingMeans {
  double through_seconds = 0;    // end of the newest window that counted
  double samples_per_batch = 0;  // a window with half as many again, or with a third less, begins anew
  int windows = 0;               // at most 40: an older one fades
  double load = 0;
  double compute = 0;  // of the logarithm of seconds per batch

  // One more window, for these means and for the sums of `all`. One that overlaps with the last changes nothing.
  // REQUIRES: compute_seconds > 0
  void take(double at_load, double compute_seconds, double samples, double window_end_seconds, double window_seconds,
            Crowding& all);

  friend bool operator==(const CrowdingMeans&, const CrowdingMeans&) = default;
};

}  // namespace sluice::scheduler
