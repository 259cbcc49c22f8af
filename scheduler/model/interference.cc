#include "scheduler/model/interference.h"

#include <algorithm>
#include <cmath>

namespace sluice::scheduler {
namespace {

constexpr double kGrownFactor = 1.25;        // feeders that use more than this multiple of before, and this much more:
constexpr double kGrownCores = 0.2;          // they have grown
constexpr int kLeastGrownWindows = 5;        // to judge a growth by
constexpr double kGrowthStandardErrors = 4;  // that a rise must exceed: every window is looked at
constexpr double kMostOverlap = 0.1;         // of a window with those before

// Of the difference between the two means, from the scatter of both.
double standard_error(const RunningMean& a, const RunningMean& b) {
  const double variance = (a.squares + b.squares) / (a.count + b.count - 2);
  return std::sqrt(variance * (1.0 / a.count + 1.0 / b.count));
}

}  // namespace

void RunningMean::take(double value) {
  ++count;
  const double off = value - mean;
  mean += off / count;
  squares += off * (value - mean);
}

bool is_apart(double window_end_seconds, double window_seconds, double through_seconds) {
  return through_seconds - (window_end_seconds - window_seconds) <= kMostOverlap * window_seconds;
}

bool has_grown(double from_cores, double to_cores) {
  return to_cores > kGrownFactor * from_cores && to_cores > from_cores + kGrownCores;
}

bool has_risen(const RunningMean& from, const RunningMean& to, double standard_errors, const Config& config) {
  const double rise = to.mean - from.mean;
  return rise > config.interference_above * from.mean && rise > standard_errors * standard_error(from, to);
}

void Interference::begin_anew() { *this = {.through_seconds = through_seconds}; }

void Interference::take(double feeder_cores, double compute_seconds, double window_end_seconds, double window_seconds,
                        const Config& config) {
  if (!is_apart(window_end_seconds, window_seconds, through_seconds)) return;
  through_seconds = window_end_seconds;
  if (cap_cores) {
    if (window_end_seconds - capped_at_seconds < config.useless_retry_seconds) return;
    begin_anew();
  }
  if (reference.count == 0 || has_grown(feeder_cores, reference_cores)) {
    begin_anew();
    reference_cores = feeder_cores;
    reference.take(compute_seconds);
    return;
  }
  if (!has_grown(reference_cores, feeder_cores)) {
    if (reference.count < kSettledWindows) reference.take(compute_seconds);
    grown = {};
    return;
  }
  grown.take(compute_seconds);
  if (grown.count < kLeastGrownWindows) return;
  if (has_risen(reference, grown, kGrowthStandardErrors, config)) {
    cap_cores = reference_cores;
    capped_at_seconds = window_end_seconds;
  } else if (grown.count >= kSettledWindows) {
    reference = grown;
    reference_cores = feeder_cores;
    grown = {};
  }
}

}  // namespace sluice::scheduler
