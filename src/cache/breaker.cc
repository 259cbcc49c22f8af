#include "src/cache/breaker.h"

#include <algorithm>

namespace sluice::cache {

Breaker::Leave Breaker::leave() {
  std::lock_guard lock(mutex_);
  if (back_off_.count() == 0) return Leave::kGiven;
  if (is_trying_ || clock_.now() < next_try_) return Leave::kNone;
  is_trying_ = true;
  return Leave::kToTry;
}

bool Breaker::answered() {
  std::lock_guard lock(mutex_);
  is_trying_ = false;
  if (back_off_.count() == 0) return false;
  back_off_ = Clock::Duration::zero();
  return true;
}

bool Breaker::failed(Leave leave) {
  std::lock_guard lock(mutex_);
  const bool is_first = back_off_.count() == 0;
  if (!is_first && leave != Leave::kToTry) return false;
  is_trying_ = false;
  back_off_ = std::clamp<Clock::Duration>(2 * back_off_, kBackOffMin, kBackOffMax);
  next_try_ = clock_.now() + back_off_;
  return is_first;
}

bool Breaker::is_open() {
  std::lock_guard lock(mutex_);
  return back_off_.count() > 0;
}

}  // namespace sluice::cache
