// Whether feeders beyond their share of a host slow the trainers there down, as trials on all hosts show: the guard of
// crowded hosts.
//
// interference.h and neighbour_guard.h compare one trainer with itself, before and after feeders grew. A trainer that
// starts on a full host has no calmer time to be compared with, and with noise of 30 % one trainer proves nothing.
// So hosts take turns. For five minutes all feeders of a host keep to their share, and its trainers show how much
// shorter their steps are then.
//
//   job       log(computing seconds per batch) in windows with and without, both less the means of the job's last
//             windows: so jobs of any size can be put together, and slow changes of a job's own work count for little
//   cluster   the slope of least squares through the deviations of all jobs
//
// The load of the hosts is not needed for it. It is the sum of many noisy figures, and where every host is full it
// hardly changes.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::scheduler {

// What the windows of all jobs have shown. Every job carries it in its memory, so that it outlives each of them.
struct Crowding {
  enum class Verdict : std::uint8_t { kUnknown, kHarmful, kHarmless };

  double through_seconds = 0;  // end of the newest window in it
  double since_seconds = 0;    // end of the first one: trials take turns from here on
  double windows = 0;          // old ones fade: all sums are halved at 40,000
  double kept_squares = 0;     // of the deviations, summed up
  double kept_fourths = 0;     // their fourth powers
  double compute_squares = 0;
  double products = 0;  // of both deviations
  Verdict verdict = Verdict::kUnknown;

  // How many windows tell something: of those like all others, any number tells nothing. REQUIRES: kept_squares > 0
  double telling_windows() const;

  // REQUIRES of all three: kept_squares > 0
  double slope() const;           // negative: steps are shorter where feeders keep to their share
  double standard_error() const;  // of the slope
  double rise() const;            // feeders beyond their share make steps longer by this share

  // Harmful is a rise of more than 1.5 %, and harmless one of less, by four standard errors. Harmful becomes harmless
  // with a rise of less than 0.5 %. At least twenty windows must tell, as a step may be long for any reason.
  void judge();

  // Whether the feeders of a host with several trainers keep to their share now. They do by the verdict. A few hosts at
  // a time try the opposite: one in four until there is a verdict, then one in 32. Trials begin with the hundredth
  // window.
  bool keeps_to_shares(std::string_view host, double now_seconds) const;

  friend bool operator==(const Crowding&, const Crowding&) = default;
};

// A job's own means, from which its windows deviate.
struct CrowdingMeans {
  double through_seconds = 0;    // end of the newest window that counted
  double samples_per_batch = 0;  // a window with half as many again, or with a third less, begins anew
  int windows = 0;               // at most 200: an older one fades
  double kept = 0;
  double compute = 0;                                          // of the logarithm of seconds per batch
  enum class Feeders : std::uint8_t { kApart, kFree, kKept };  // apart: no other trainer is there, or hosts differ
  Feeders feeders = Feeders::kApart;                           // on its hosts, by the last plan
  double feeders_since_seconds = 0;

  // The plan of `now_seconds` has feeders keep to their share on so many of the hosts that it shares with others.
  void plan(int shared_hosts, int kept_hosts, double now_seconds);

  // One more window, for these means and for the sums of `all`. One that overlaps with the last changes nothing.
  // Neither does one that began before the feeders had followed the plan, which takes half a minute.
  // REQUIRES: compute_seconds > 0
  void take(double compute_seconds, double samples, double window_end_seconds, double window_seconds, Crowding& all);

  friend bool operator==(const CrowdingMeans&, const CrowdingMeans&) = default;
};

}  // namespace sluice::scheduler
