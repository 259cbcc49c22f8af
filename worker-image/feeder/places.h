// When each of several places is free, in an expected future: the threads of an executor, or the requests that a
// pipeline may have there at once.
//
// Thread safety: none; a value.
#pragma once

#include <cstddef>
#include <vector>

#include "src/base/clock.h"

namespace sluice::feeder {

// Longer expectations than some days mean nothing, and count as those.
Clock::Duration duration(double seconds);

class Places {
 public:
  using TimePoint = Clock::TimePoint;

  void add(TimePoint free_at, std::size_t places = 1);
  std::size_t size() const { return free_at_.size(); }

  // What follows REQUIRES that there is a place.
  TimePoint first_free() const { return free_at_.front(); }
  // When work of `seconds` on so many places at once has ended, if it gets those that are free first. Each joins when
  // it is free, and all end together.
  TimePoint finish(double seconds, std::size_t places) const;
  // The same work takes them.
  TimePoint take(double seconds, std::size_t places);
  // The first one is taken until then.
  void take_first(TimePoint until);

 private:
  std::vector<TimePoint> free_at_;  // a heap, the earliest first
};

}  // namespace sluice::feeder
