#include "scheduler/model/tracked.h"

#include <algorithm>
#include <cmath>

namespace sluice::scheduler {
namespace {

// More values make no difference; the counter stays small however long a job runs.
constexpr int kEnough = 1 << 16;

constexpr int kNoiseMemory = 40;  // values; one that is far off raises the threshold no longer than that
// Standard deviation of a normal distribution over the mean distance of its values. A change of the truth adds its
// distance once, not its square.
constexpr double kDeviationOfDistance = 1.2533;

// Rates of 1e300 after rates of 1e-300 must leave finite averages: glitches of counters are that absurd.
constexpr double kLargestStep = 1e9;

double bounded_ratio(double value, double to) { return std::clamp(value / to, 1 / kLargestStep, kLargestStep); }

bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

// Of the average that forgets, when each value has this weight in it.
double deviation_of_average(double noise, double weight) { return noise * std::sqrt(weight / (2 - weight)); }

}  // namespace

Tracked::Step Tracked::take(double value, const Config& config) {
  const int before = count;
  count = std::min(count + 1, kEnough);
  const double weight = std::max(config.smoothing, 1.0 / count);
  // By the noise as it was before: the value that tells of another truth is no noise yet.
  const double explained = config.publish_sigmas * deviation_of_average(noise, weight);
  noise_values = std::min(noise_values + 1, kNoiseMemory);
  noise += (kDeviationOfDistance * std::abs(std::log(bounded_ratio(value, recent))) - noise) / noise_values;

  recent *= std::pow(bounded_ratio(value, recent), weight);
  mean *= std::pow(bounded_ratio(value, mean), 1.0 / count);
  if (std::abs(std::log(recent / published)) > std::max(std::log1p(config.publish_threshold), explained)) {
    mean = published = recent;
    count = 1;
    return Step::kChanged;
  }
  if (count == before || !is_power_of_two(count) || mean == published) return Step::kKept;
  published = mean;
  return Step::kRefined;
}

void Tracked::rescale(double factor) {
  recent *= factor;
  mean *= factor;
  published *= factor;
}

}  // namespace sluice::scheduler
