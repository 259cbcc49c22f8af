#include "scheduler/simulator/physics.h"

#include <cmath>

namespace sluice::simulator {

double progress(double supply_ratio, double softmin_exponent) {
  if (supply_ratio <= 0) return 0;
  // The power of the larger side is taken, so that extreme ratios neither overflow nor vanish.
  if (supply_ratio >= 1) return std::pow(1 + std::pow(supply_ratio, -softmin_exponent), -1 / softmin_exponent);
  return supply_ratio * std::pow(1 + std::pow(supply_ratio, softmin_exponent), -1 / softmin_exponent);
}

double local_supply_cores(double cores, const Physics& physics) {
  if (physics.local_exponent == 1 && physics.local_flatter_above_cores == 0) return cores;
  const double knee = physics.local_flatter_above_cores;
  if (knee <= 0 || cores <= knee) return std::pow(cores, physics.local_exponent);
  return std::pow(knee, physics.local_exponent) * std::pow(cores / knee, physics.local_flatter_exponent);
}

}  // namespace sluice::simulator
