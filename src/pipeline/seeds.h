// The seed of one sample, the same wherever the sample is computed.
//
// A sample's random draws depend only on (base_seed, epoch, position), never on the worker, thread or batch that
// computes it. So a batch that is issued again after a lost worker has the same bytes. Source:
// docs/designs/protocols.md, section 3; the finaliser is SplitMix64's (Steele, Lea, Flood: Fast Splittable Pseudorandom
// Number Generators, 2014).
#pragma once

#include <cstdint>

namespace sluice::pipeline {

// SplitMix64's output function: every input bit reaches every output bit.
constexpr std::uint64_t splitmix64_finalise(std::uint64_t z) {
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9ULL;
  z ^= z >> 27;
  z *= 0x94D049BB133111EBULL;
  z ^= z >> 31;
  return z;
}

// `position` counts samples from the start of the epoch; 2^40 samples fit into an epoch. All arithmetic is mod 2^64.
constexpr std::uint32_t sample_seed(std::uint64_t base_seed, std::uint64_t epoch, std::uint64_t position) {
  const std::uint64_t counter = (epoch << 40) + position + 1;
  return static_cast<std::uint32_t>(splitmix64_finalise(base_seed + 0x9E3779B97F4A7C15ULL * counter));
}

}  // namespace sluice::pipeline
