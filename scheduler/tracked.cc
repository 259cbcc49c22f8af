#include "scheduler/tracked.h"

#include <algorithm>
#include <cmath>

namespace sluice::scheduler {
namespace {

// More values make no difference; the counter stays small however long a job runs.
constexpr int kEnough = 1 << 16;

bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

}  // namespace

Tracked::Step Tracked::take(double value, const Config& config) {
  const int before = count;
  count = std::min(count + 1, kEnough);
  recent += std::max(config.smoothing, 1.0 / count) * (value - recent);
  mean += (value - mean) / count;
  if (std::abs(recent - published) > config.publish_threshold * published) {
    *this = starting_at(recent);
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
