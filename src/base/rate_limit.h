// At most so many a second: an allowance that fills with time, and that each taker lessens by one.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <chrono>

#include "src/base/clock.h"

namespace sluice {

class RateLimit {
 public:
  // `at_once_max`: what there is at `now`, and after a pause at most.
  RateLimit(double per_second, double at_once_max, Clock::TimePoint now)
      : per_second_(per_second), at_once_max_(at_once_max), left_(at_once_max), counted_at_(now) {}

  // False: there is none left.
  bool take(Clock::TimePoint now) {
    const double passed_seconds = std::chrono::duration<double>(now - counted_at_).count();
    left_ = std::min(left_ + passed_seconds * per_second_, at_once_max_);
    counted_at_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  double per_second_;
  double at_once_max_;
  double left_;
  Clock::TimePoint counted_at_;
};

}  // namespace sluice
