#include "src/object_store/pace.h"

#include <algorithm>

namespace sluice::object_store {

bool Pace::may_enter(std::size_t bytes) const {
  if (in_flight_ == 0) return true;
  return in_flight_ < static_cast<std::size_t>(limit_) && bytes_ + bytes <= kBytesMost;
}

void Pace::enter(std::size_t bytes) {
  ++in_flight_;
  bytes_ += bytes;
}

void Pace::give_up(std::size_t bytes) {
  --in_flight_;
  bytes_ -= bytes;
}

void Pace::leave(std::size_t bytes, bool is_throttled) {
  give_up(bytes);
  constexpr double kNewest = 1.0 / 32;
  refused_share_ += ((is_throttled ? 1 : 0) - refused_share_) * kNewest;
  if (refused_share_ <= kRefusedMost) {
    limit_ = std::min(kRequestsMost, limit_ + (slowed_at_ ? 1 / limit_ : 1));
  } else if (!slowed_at_ || clock_.now() - *slowed_at_ >= std::chrono::seconds(1)) {
    limit_ = std::max(kRequestsLeast, limit_ * 0.75);
    slowed_at_ = clock_.now();
  }
}

}  // namespace sluice::object_store
