// How long one thread of an executor takes for one sample of one pipeline: a robust mean, as a pure function of what
// was seen.
//
// Kept as a logarithm, so that ten times slower counts as much as ten times faster, and one outlier moves it little.
// A mean that is old says nothing any more: the next sample replaces it.
#pragma once

#include <chrono>

#include "src/base/clock.h"

namespace sluice::feeder {

class ServiceTime {
 public:
  // After that an executor is tried anew: what made it slow may be over.
  static constexpr std::chrono::seconds kValid{30};

  void observe(double seconds_per_sample, Clock::TimePoint now);
  // It was given up after so long. As far as anyone knows it would have taken as long again.
  void observe_unfinished(double seconds_per_sample, Clock::TimePoint now);

  bool was_observed() const { return observed_; }
  bool is_known(Clock::TimePoint now) const { return observed_ && now - observed_at_ <= kValid; }
  // Of one sample. REQUIRES: was_observed().
  double seconds() const;
  // How many times that a sample may take before it is late: at least twice.
  double late_factor() const;

  auto operator<=>(const ServiceTime&) const = default;

 private:
  bool observed_ = false;
  double log_mean_ = 0;
  double log_deviation_ = 0;
  Clock::TimePoint observed_at_{};
};

// Of an executor that nothing is known of.
inline constexpr double kUnknownLateFactor = 4;

}  // namespace sluice::feeder
