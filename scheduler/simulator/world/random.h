// Random numbers that are the same on every machine and do not depend on the order of draws. Each draw is a function of
// the seed and of its key (a purpose, an object, a count). A policy that decides more often so meets the same failures
// and the same noise as its baselines.
//
// Generator: splitmix64's finaliser (Steele, Lea, Flood 2014) over the mixed words.
// Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace sluice::simulator {

enum class Draw : std::uint64_t {
  kNoise = 1,
  kFailure,
  kReclaim,
  kCost,
  kArrival,
  kGpus,
  kDuration,
  kModel,
  kKnee,
  kBusyCpuError,
  kOrder,
  kReadNoise
};

struct Key {
  std::uint64_t seed = 0;
  Draw purpose = Draw::kNoise;
  std::uint64_t object = 0;
  std::uint64_t count = 0;
};

double uniform(const Key& key);      // [0, 1)
double normal(const Key& key);       // mean 0, standard deviation 1
double exponential(const Key& key);  // mean 1

}  // namespace sluice::simulator
