#include "operator/observe/clock_skew.h"

#include <cmath>

namespace sluice::observe {
namespace {

constexpr double kToleranceSeconds = 2;
constexpr double kApartSeconds = 10;

}  // namespace

double ClockSkew::seconds_ahead(double server_seconds, double own_seconds) {
  const Reading now{own_seconds, own_seconds - server_seconds};
  // A clock that was set back makes the earlier reading worthless.
  if (earlier_ && own_seconds < earlier_->own_seconds) earlier_.reset();
  if (earlier_ && own_seconds - earlier_->own_seconds < kApartSeconds) return believed_seconds_;
  const bool steady = earlier_ && std::fabs(now.ahead_seconds - earlier_->ahead_seconds) <= kToleranceSeconds;
  if (steady && std::fabs(now.ahead_seconds - believed_seconds_) > kToleranceSeconds)
    believed_seconds_ = now.ahead_seconds;
  earlier_ = now;
  return believed_seconds_;
}

}  // namespace sluice::observe
