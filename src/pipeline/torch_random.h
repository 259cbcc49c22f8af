// torch's CPU random number generator, draw for draw.
//
// Native operations must see the same random numbers as torchvision's Python code under torch.manual_seed, so this is
// MT19937 with torch's seeding and torch's way of making floats and integers out of its 32-bit outputs.
// Source of MT19937: Matsumoto and Nishimura, ACM TOMACS 8(1), 1998 (with the 2002 initialisation).
//
// Thread safety: none; one generator per sample.
#pragma once

#include <array>
#include <cstdint>

namespace sluice::pipeline {

class TorchRandom {
 public:
  // As torch.manual_seed(seed): only the low 32 bits of a seed reach the generator.
  explicit TorchRandom(std::uint32_t seed) { manual_seed(seed); }
  void manual_seed(std::uint32_t seed);

  // One output of the generator.
  std::uint32_t next();

  // torch.empty(1).uniform_(from, to): 24 random bits in [0, 1), scaled in float32. One output is consumed.
  float uniform(float from, float to);

  // torch.rand(1)
  float rand() { return uniform(0.0F, 1.0F); }

  // torch.randint(low, high, (1,)): low <= result < high. One output is consumed for ranges below 2^28, else two.
  // REQUIRES: low < high
  std::int64_t randint(std::int64_t low, std::int64_t high);

 private:
  static constexpr int kWords = 624;
  static constexpr int kMiddle = 397;

  // Computes word `index` of the next generation in place. The state is renewed one word at a time, because a sample
  // draws about five numbers and renewing all 624 words costs more than the draws.
  void renew(int index);

  std::array<std::uint32_t, kWords> words_;
  int seeded_;  // words below this index are initialised from the seed; the rest still have to be
  int next_;
};

}  // namespace sluice::pipeline
