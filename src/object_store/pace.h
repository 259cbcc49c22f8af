// How much may be in flight: many small answers hide a store's latency, and too many make it refuse them.
//
// The limit doubles with each round of answers until the store first says that it is too much; from then on it grows by
// one for each round, and falls to three quarters when the store says so again, once a second at most (additive
// increase, multiplicative decrease, as in TCP). The store says so by refusing more than kRefusedMost of the newest
// requests. A few refusals, whatever is in flight, are no reason to ask for less: each is asked again behind a pause of
// its own. Thread safety: none.
#pragma once

#include <cstddef>
#include <optional>

#include "src/base/clock.h"

namespace sluice::object_store {

class Pace {
 public:
  // One process stands for all workers of its pod, where the Python executor has many with 32 each.
  static constexpr double kRequestsMost = 256;
  static constexpr double kRequestsLeast = 2;
  static constexpr double kRequestsFirst = 16;
  static constexpr double kRefusedMost = 0.15;
  static constexpr std::size_t kBytesMost = std::size_t{1} << 28;

  // REQUIRES: clock outlives this
  explicit Pace(const Clock& clock) : clock_(clock) {}

  // A request that is larger than the bound goes alone.
  bool may_enter(std::size_t bytes) const;
  void enter(std::size_t bytes);
  void leave(std::size_t bytes, bool is_throttled);
  // Leaves without an answer.
  void give_up(std::size_t bytes);

  double limit() const { return limit_; }

 private:
  const Clock& clock_;
  double limit_ = kRequestsFirst;
  double refused_share_ = 0;  // of the newest answers, some dozens
  std::size_t in_flight_ = 0;
  std::size_t bytes_ = 0;
  std::optional<Clock::TimePoint> slowed_at_;
};

}  // namespace sluice::object_store
