// Pillow's Image.blend of RGB pixels without gaps, byte for byte: float32 arithmetic, truncated, and clipped where the
// factor goes beyond the two. A pixel becomes from + factor * (pixel - from).
//
// Processors with AVX2 have versions of their own, which compute the same. Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "src/pipeline/registers.h"

namespace sluice::pipeline {

using Pixels = std::span<std::uint8_t>;

// Of one byte.
inline std::uint8_t blend(int from, int to, float factor) {
  const float mixed = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(std::clamp(mixed, 0.0F, 255.0F));
}

// From one level of grey, 0 to 255.
void blend_from_level(int level, float factor, Pixels pixels, Registers registers = Registers::kWidest);

// From the grey of each pixel (luminance.h).
void blend_from_greys(float factor, Pixels pixels, Registers registers = Registers::kWidest);

// Pillow's conversion to grey, in all three channels.
void make_grey(Pixels pixels, Registers registers = Registers::kWidest);

std::uint64_t sum_of_greys(std::span<const std::uint8_t> pixels, Registers registers = Registers::kWidest);

}  // namespace sluice::pipeline
