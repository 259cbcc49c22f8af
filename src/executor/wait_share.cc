#include "src/executor/wait_share.h"

#include <algorithm>
#include <cmath>

namespace sluice::executor {

bool WaitShare::observe(double busy_seconds, double blocked_seconds) {
  std::lock_guard lock(mutex_);
  busy_seconds_ = kKept * busy_seconds_ + std::max(0.0, busy_seconds);
  blocked_seconds_ = kKept * blocked_seconds_ + std::max(0.0, blocked_seconds);
  const double share = blocked_seconds_ / std::max(busy_seconds_ + blocked_seconds_, 1e-9);
  waits_ = waits_ ? share > kWaitsAbove / 2 : share > kWaitsAbove && blocked_seconds_ >= kEvidenceSeconds;
  wants_exact_ = waits_ || !is_small(busy_seconds, blocked_seconds);
  const double load = load_of_seen();
  const bool is_told = (load == 1) != (load_ == 1) || std::abs(load - load_) > kToldChange * load_;
  if (is_told) load_ = load;
  return is_told;
}

bool WaitShare::observe_rough(double busy_seconds, double blocked_seconds) {
  if (is_small(busy_seconds, blocked_seconds)) return observe(busy_seconds, blocked_seconds);
  wants_exact_ = true;
  return false;
}

bool WaitShare::is_small(double busy_seconds, double blocked_seconds) {
  return blocked_seconds <= kWaitsAbove / 2 * (busy_seconds + blocked_seconds);
}

std::size_t WaitShare::jobs_on(std::size_t threads) const {
  const auto filling = static_cast<std::size_t>(std::ceil(static_cast<double>(threads) / load_));
  return std::min(filling, std::max<std::size_t>(threads, jobs_max_));
}

double WaitShare::load_of_seen() const {
  if (!waits_) return 1;
  return std::max(kLoadMin, busy_seconds_ / (busy_seconds_ + kSlack * blocked_seconds_));
}

}  // namespace sluice::executor
