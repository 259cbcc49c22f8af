#include "src/pipeline/audio/lane_transform.h"

#include <cmath>
#include <numbers>

namespace sluice::pipeline::audio {
namespace {

// The next factor to divide by: fours first, as they cost least.
std::size_t radix_of(std::size_t length) {
  if (length % 4 == 0) return 4;
  if (length % 2 == 0) return 2;
  std::size_t radix = 3;
  while (radix <= kLargestRadix && length % radix != 0) radix += 2;
  return radix;
}

}  // namespace

Root root_of_unity(std::size_t k, std::size_t n) {
  const double angle = -2.0 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
}

bool LaneTransform::supports(std::size_t length) {
  if (length == 0) return false;
  while (length > 1) {
    const std::size_t radix = radix_of(length);
    if (radix > kLargestRadix) return false;
    length /= radix;
  }
  return true;
}

LaneTransform::LaneTransform(std::size_t length) : length_(length) {
  std::size_t stride = 1;
  for (std::size_t rest = length; rest > 1;) {
    const std::size_t radix = radix_of(rest);
    TransformStage stage{.radix = radix, .groups = rest / radix, .stride = stride, .twiddles = {}, .radix_powers = {}};
    for (std::size_t group = 0; group < stage.groups; ++group) {
      for (std::size_t k = 1; k < radix; ++k) stage.twiddles.push_back(root_of_unity(group * k, rest));
    }
    for (std::size_t k = 0; k < radix; ++k) stage.radix_powers.push_back(root_of_unity(k, radix));
    stages_.push_back(std::move(stage));
    rest /= radix;
    stride *= radix;
  }
}

}  // namespace sluice::pipeline::audio
