// Random numbers of a simulation: the same seed gives the same run, with every compiler and library.
#pragma once

#include <cstdint>
#include <random>

namespace sluice::simulation {

// Thread safety: none.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // Uniform in [0, bound). REQUIRES: bound > 0. (The standard's distributions differ between libraries.)
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }
  bool chance(double probability) { return unit() < probability; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sluice::simulation
