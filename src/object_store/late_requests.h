// When a request is asked for once more: the slowest of a hundred keep a whole batch waiting, and another server of the
// store answers at once. As "The Tail at Scale" (Dean, Barroso, 2013) has hedged requests, with the rule and the bounds
// of python/sluice/stores/late_requests.py (docs/designs/object-stores.md).
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "src/base/clock.h"

namespace sluice::object_store {

class LateRequests {
 public:
  static constexpr std::size_t kRemembered = 256;
  static constexpr std::size_t kKnownEnough = 32;  // with fewer answers no request counts as late
  static constexpr double kShareInTime = 0.99;
  static constexpr Clock::Duration kLeast = std::chrono::milliseconds(20);  // another request costs more than that wait
  static constexpr std::size_t kRequestsPerHedge = 20;
  static constexpr double kBytesLikeARequest = 1 << 20;  // take about as long again as the first byte

  // What a good answer took, first byte to last; or at least took, where the request was given up as late.
  void took(std::size_t bytes, Clock::Duration time);

  // What a request of this size may take. nullopt: too few answers are known.
  std::optional<Clock::Duration> late_after(std::size_t bytes) const;

  // Takes one from what may be asked for again: a request of twenty, and twelve at a time.
  bool may_ask_again();

  // The store says that it is too much: nothing is asked for twice until more answers have come.
  void store_is_busy() { credit_ = 0; }

 private:
  std::vector<double> seconds_;  // for a size of one, the newest ones
  std::size_t oldest_ = 0;
  double late_seconds_ = 0;  // for a size of one; by the answers but for the newest few
  std::size_t since_late_ = 0;
  std::size_t credit_ = 0;  // answers that no second request has used up
};

}  // namespace sluice::object_store
