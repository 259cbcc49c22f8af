// The colours of torchvision's second generation on tensors of bytes, byte for byte: torch's float32, truncated. The
// pixels are RGB without gaps, as everywhere here.
//
// torch adds a multiple of one tensor to another with one rounding on processors with AVX2 and FMA, in whole vectors
// and in what is left of them. On others it rounds twice, which these do not do: clients ask their torch first.
//
// Processors with AVX2 have versions of their own, which compute the same. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "src/pipeline/ops/blend.h"

namespace sluice::pipeline {

// A byte becomes factor * byte + (1 - factor) * level. REQUIRES: |factor| <= 1e6
void blend_tensor_from_level(float level, float factor, Pixels pixels, Registers registers = Registers::kWidest);

// From the grey of each pixel, a whole number.
void blend_tensor_from_greys(float factor, Pixels pixels, Registers registers = Registers::kWidest);

// The grey in all three channels.
void make_tensor_grey(Pixels pixels, Registers registers = Registers::kWidest);

// torch adds up float32 in an order that its build and threads decide. Any order gives this up to
// kMostPixelsOfExactMean, as all sums are whole numbers to 2^24; no grey is above 254. REQUIRES: there are pixels
float mean_grey_of_tensor(std::span<const std::uint8_t> pixels, Registers registers = Registers::kWidest);
inline constexpr std::int64_t kMostPixelsOfExactMean = (1 << 24) / 254;

// Turns hues by a share of the circle. REQUIRES: -0.5 <= turn <= 0.5
void turn_tensor_hues(float turn, Pixels pixels, Registers registers = Registers::kWidest);

}  // namespace sluice::pipeline
