#include "src/object_store/late_requests.h"

#include <algorithm>

namespace sluice::object_store {
namespace {

constexpr std::size_t kAnswersPerLook = 16;  // Sorting for each answer would cost as much as a request's headers.

double size_of_request(std::size_t bytes) { return 1 + static_cast<double>(bytes) / LateRequests::kBytesLikeARequest; }

double nth_of(std::vector<double> seconds, double share) {
  const auto nth = std::min(seconds.size() - 1, static_cast<std::size_t>(static_cast<double>(seconds.size()) * share));
  const auto place = seconds.begin() + static_cast<std::ptrdiff_t>(nth);
  std::nth_element(seconds.begin(), place, seconds.end());
  return *place;
}

}  // namespace

void LateRequests::took(std::size_t bytes, Clock::Duration time) {
  const double seconds = std::chrono::duration<double>(time).count() / size_of_request(bytes);
  if (seconds_.size() < kRemembered) {
    seconds_.push_back(seconds);
  } else {
    seconds_[oldest_] = seconds;
    oldest_ = (oldest_ + 1) % kRemembered;
  }
  credit_ = std::min(credit_ + 1, kRemembered);
  if (++since_late_ < kAnswersPerLook) return;
  since_late_ = 0;
  late_seconds_ = nth_of(seconds_, kShareInTime);
}

std::optional<Clock::Duration> LateRequests::late_after(std::size_t bytes) const {
  if (seconds_.size() < kKnownEnough) return std::nullopt;
  const std::chrono::duration<double> known(late_seconds_ * size_of_request(bytes));
  return std::max(kLeast, std::chrono::duration_cast<Clock::Duration>(known));
}

bool LateRequests::may_ask_again() {
  if (credit_ < kRequestsPerHedge) return false;
  credit_ -= kRequestsPerHedge;
  return true;
}

}  // namespace sluice::object_store
