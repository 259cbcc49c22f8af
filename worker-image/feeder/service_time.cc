#include "worker-image/feeder/service_time.h"

#include <algorithm>
#include <cmath>

namespace sluice::feeder {
namespace {

constexpr double kGain = 0.25;        // of one sample
constexpr double kSecondsMin = 1e-9;  // a logarithm needs more than nothing
constexpr double kStepMax = 2.0;      // of one sample: a factor of e^2
constexpr double kDeviationsMax = 4;  // beyond so many mean deviations it is late
constexpr double kFactorMin = 2, kFactorMax = 8;

}  // namespace

void ServiceTime::observe(double seconds_per_sample, Clock::TimePoint now) {
  const double value = std::log(std::max(seconds_per_sample, kSecondsMin));
  if (is_known(now)) {
    const double step = std::clamp(value - log_mean_, -kStepMax, kStepMax);
    log_mean_ += kGain * step;
    log_deviation_ += kGain * (std::abs(step) - log_deviation_);
  } else {
    log_mean_ = value;
    log_deviation_ = std::log(kUnknownLateFactor) / kDeviationsMax;
  }
  observed_ = true;
  observed_at_ = now;
}

void ServiceTime::observe_unfinished(double seconds_per_sample, Clock::TimePoint now) {
  const double at_least = 2 * seconds_per_sample;
  if (is_known(now) && at_least <= seconds()) return;
  // Unlike a sample, this is a bound: the mean is not below it.
  if (is_known(now)) log_mean_ = std::log(std::max(at_least, kSecondsMin));
  observe(at_least, now);
}

double ServiceTime::seconds() const { return std::exp(log_mean_); }

double ServiceTime::late_factor() const {
  return std::clamp(std::exp(kDeviationsMax * log_deviation_), kFactorMin, kFactorMax);
}

}  // namespace sluice::feeder
