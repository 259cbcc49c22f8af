#include "src/pipeline/torch_random.h"

#include <cassert>
#include <cmath>
#include <utility>

namespace sluice::pipeline {

float TorchRandom::uniform(float from, float to) {
  constexpr std::uint32_t kMantissaMask = (1U << 24) - 1;
  const float unit = static_cast<float>(engine_() & kMantissaMask) * 0x1p-24F;
  return std::fma(unit, to - from, from);
}

std::int64_t TorchRandom::randint(std::int64_t low, std::int64_t high) {
  assert(low < high && high - low < (std::int64_t{1} << 28));
  const auto range = static_cast<std::uint32_t>(high - low);
  return low + static_cast<std::int64_t>(engine_() % range);
}

std::array<int, 4> TorchRandom::permutation_of_four() {
  std::array<int, 4> numbers{0, 1, 2, 3};
  for (std::uint32_t i = 0; i < 3; ++i) std::swap(numbers[i], numbers[i + engine_() % (4 - i)]);
  return numbers;
}

}  // namespace sluice::pipeline
