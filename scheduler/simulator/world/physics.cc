#include "scheduler/simulator/world/physics.h"

#include <algorithm>
#include <cmath>

#include "scheduler/simulator/world/random.h"

namespace sluice::simulator {

double progress(double supply_ratio, double softmin_exponent) {
  if (supply_ratio <= 0) return 0;
  // The power of the larger side is taken, so that extreme ratios neither overflow nor vanish.
  if (supply_ratio >= 1) return std::pow(1 + std::pow(supply_ratio, -softmin_exponent), -1 / softmin_exponent);
  return supply_ratio * std::pow(1 + std::pow(supply_ratio, softmin_exponent), -1 / softmin_exponent);
}

double cost_factor(const Physics& physics, std::uint64_t seed, int job, int stretch) {
  if (physics.cost_change <= 0 || stretch == 0) return 1;
  return std::exp(physics.cost_change *
                  normal({seed, Draw::kCost, static_cast<std::uint64_t>(job), static_cast<std::uint64_t>(stretch)}));
}

double local_supply_cores(double cores, const Physics& physics) {
  if (physics.local_exponent == 1 && physics.local_flatter_above_cores == 0) return cores;
  const double knee = physics.local_flatter_above_cores;
  const double together = knee <= 0 || cores <= knee ? std::pow(cores, physics.local_exponent)
                                                     : std::pow(knee, physics.local_exponent) *
                                                           std::pow(cores / knee, physics.local_flatter_exponent);
  return std::min(cores, together);  // a part of a core is not worth more than itself
}

}  // namespace sluice::simulator
