// How the samples of a FLAC channel follow from those before them, and from what its encoder wrote of the difference.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {

inline constexpr unsigned kFlacOrderMax = 32;

// sample = residual + (the weighted sum of samples before it >> shift); the weight of the latest sample is the first.
struct FlacPredictor {
  unsigned order = 0;
  unsigned shift = 0;
  std::array<std::int32_t, kFlacOrderMax> weights{};
};

// A residual as FLAC codes it: even numbers stand for positive ones.
inline std::uint32_t flac_code_of(std::int32_t residual) {
  return static_cast<std::uint32_t>(residual) << 1 ^ static_cast<std::uint32_t>(residual >> 31);
}

// One channel of a frame: the first samples, as many as its predictor's order, and codes in the place of the others.
struct FlacRow {
  FlacPredictor predictor{};
  unsigned bits = 0;    // of a sample, without those that are wasted
  unsigned wasted = 0;  // zeros behind them
  std::size_t length = 0;
};

// Codes become samples, in up to kLanes rows at once. Row i lies at `samples` + i * `stride`. False, and the samples
// are unspecified, where one has more bits than its row. REQUIRES: `samples` has kLanes * stride numbers, stride is a
// multiple of kLanes and not below any length, no order is above its row's length
bool add_flac_predictions(std::span<const FlacRow> rows, std::size_t stride, Registers registers,
                          std::int32_t* samples);

}  // namespace sluice::pipeline::audio
