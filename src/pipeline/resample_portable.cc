#include <algorithm>
#include <array>

#include "src/pipeline/resample_kernels.h"

namespace sluice::pipeline {
namespace {

std::uint8_t rounded_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

void horizontal(const AxisTaps& taps, const std::uint8_t* const* sources, std::uint8_t* const* targets, int row_count) {
  for (int row = 0; row < row_count; ++row) {
    std::uint8_t* target = targets[row];
    for (const AxisTaps::Output& output : taps.outputs) {
      const std::int32_t* weights = &taps.weights[output.first_group * kTapsPerGroup];
      const std::uint8_t* pixel = sources[row] + static_cast<std::size_t>(output.first_input) * 3;
      std::array<std::int32_t, 3> sums{kRoundingHalf, kRoundingHalf, kRoundingHalf};
      for (int tap = 0; tap < output.count; ++tap, pixel += 3) {
        for (std::size_t channel = 0; channel < 3; ++channel) sums[channel] += weights[tap] * pixel[channel];
      }
      for (const std::int32_t sum : sums) *target++ = rounded_byte(sum);
    }
  }
}

void vertical(const AxisTaps& taps, const AxisTaps::Output& output, const std::uint8_t* source,
              std::size_t stride_bytes, std::uint8_t* target, std::size_t row_bytes) {
  // Blocks small enough to stay in registers or the nearest cache; the loops over columns vectorise.
  constexpr std::size_t kBlock = 64;
  const std::int32_t* weights = &taps.weights[output.first_group * kTapsPerGroup];
  for (std::size_t start = 0; start < row_bytes; start += kBlock) {
    const std::size_t columns = std::min(kBlock, row_bytes - start);
    std::array<std::int32_t, kBlock> sums;
    sums.fill(kRoundingHalf);
    const std::uint8_t* row = source + start;
    for (int tap = 0; tap < output.count; ++tap, row += stride_bytes) {
      for (std::size_t column = 0; column < columns; ++column) sums[column] += weights[tap] * row[column];
    }
    for (std::size_t column = 0; column < columns; ++column) target[start + column] = rounded_byte(sums[column]);
  }
}

}  // namespace

const ResampleKernels& portable_kernels() {
  static constexpr ResampleKernels kKernels{"portable", horizontal, vertical};
  return kKernels;
}

std::vector<const ResampleKernels*> available_kernels() {
  std::vector<const ResampleKernels*> kernels{&portable_kernels()};
  for (const ResampleKernels* more : x86_kernels()) kernels.push_back(more);
  return kernels;
}

const ResampleKernels& best_kernels() {
  static const ResampleKernels& best = *available_kernels().back();
  return best;
}

}  // namespace sluice::pipeline
