#include "scheduler/simulator/world/random.h"

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

// What all words of a key are made from; word n of it is mixed(root ^ n).
std::uint64_t root(const Key& key) {
  std::uint64_t z = mixed(key.seed);
  z = mixed(z ^ static_cast<std::uint64_t>(key.purpose));
  z = mixed(z ^ key.object);
  return mixed(z ^ key.count);
}

double fraction(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

double uniform(const Key& key) { return fraction(mixed(root(key))); }

double normal(const Key& key) {
  const std::uint64_t from = root(key);
  const double radius = std::sqrt(-2 * std::log(1 - fraction(mixed(from))));
  return radius * std::cos(2 * std::numbers::pi * fraction(mixed(from ^ 1)));
}

double exponential(const Key& key) { return -std::log(1 - uniform(key)); }

}  // namespace sluice::simulator
