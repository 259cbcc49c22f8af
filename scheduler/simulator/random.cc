#include "scheduler/simulator/random.h"

#include <cmath>
#include <numbers>

namespace sluice::simulator {
namespace {

std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::uint64_t word(const Key& key, std::uint64_t lane) {
  std::uint64_t z = mixed(key.seed);
  z = mixed(z ^ static_cast<std::uint64_t>(key.purpose));
  z = mixed(z ^ key.object);
  z = mixed(z ^ key.count);
  return mixed(z ^ lane);
}

double fraction(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

double uniform(const Key& key) { return fraction(word(key, 0)); }

double normal(const Key& key) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(key)));
  return radius * std::cos(2 * std::numbers::pi * fraction(word(key, 1)));
}

double exponential(const Key& key) { return -std::log(1 - uniform(key)); }

}  // namespace sluice::simulator
