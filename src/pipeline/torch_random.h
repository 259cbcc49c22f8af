// torch's CPU random number generator, draw for draw.
//
// Native operations must see the same random numbers as torchvision's Python code under torch.manual_seed. torch's
// generator is the standard MT19937 (mersenne_twister.h). This class adds torch's way of making floats and bounded
// integers out of its 32-bit outputs.
//
// Thread safety: none; one generator per sample.
#pragma once

#include <array>
#include <cstdint>

#include "src/pipeline/mersenne_twister.h"

namespace sluice::pipeline {

class TorchRandom {
 public:
  // As torch.manual_seed(seed): only the low 32 bits of a seed reach torch's generator.
  explicit TorchRandom(std::uint32_t seed) : engine_(seed) {}

  // torch.empty(1).uniform_(from, to): 24 random bits make a number in [0, 1), one fused multiply-add scales it. The
  // fused operation is not an optimisation. torch's own kernels are compiled that way for every CPU that has it (x86-64
  // with AVX2, arm64). A separate multiplication and addition differ in the last bit of every fourth draw.
  float uniform(float from, float to);

  // torch.rand(1)
  float rand() { return uniform(0.0F, 1.0F); }

  // torch.rand(1) < probability: torch compares with the probability rounded to float32.
  bool chance(double probability) { return rand() < static_cast<float>(probability); }

  // torch.randperm(4): one draw for each place but the last.
  std::array<int, 4> permutation_of_four();

  // torch.randint(low, high, (1,)): low <= result < high. Consumes one output, also when there is nothing to choose.
  // REQUIRES: low < high and high - low < 2^28 (torch changes to 64-bit draws there)
  std::int64_t randint(std::int64_t low, std::int64_t high);

 private:
  MersenneTwister engine_;
};

}  // namespace sluice::pipeline
