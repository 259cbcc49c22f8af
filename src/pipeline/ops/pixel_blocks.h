// Blocks of pixels with a plane for each channel, for loops that become vectors: they have no branches, and always run
// to the same end.
//
// Everything is inlined into a version for each processor. Thread safety: pure functions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "src/pipeline/ops/blend.h"

namespace sluice::pipeline {

inline constexpr std::size_t kBlock = 64;  // pixels

struct Block {
  std::array<std::uint8_t, kBlock> red;
  std::array<std::uint8_t, kBlock> green;
  std::array<std::uint8_t, kBlock> blue;
};

// `yes` or `no`, without the branch that a conditional expression may become.
[[gnu::always_inline]] inline std::int32_t chosen(bool condition, std::int32_t yes, std::int32_t no) {
  const std::int32_t mask = -static_cast<std::int32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

[[gnu::always_inline]] inline float chosen(bool condition, float yes, float no) {
  return std::bit_cast<float>(chosen(condition, std::bit_cast<std::int32_t>(yes), std::bit_cast<std::int32_t>(no)));
}

// Of values: std::max, which takes references, keeps loops from becoming vectors.
[[gnu::always_inline]] inline std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }
[[gnu::always_inline]] inline std::int32_t smaller(std::int32_t a, std::int32_t b) { return a < b ? a : b; }

// Calls see(block, count) for all pixels: `count` of a block's are there, and the others are any.
template <typename See>
[[gnu::always_inline]] inline void see_blocks(See see, std::span<const std::uint8_t> pixels) {
  Block block{};
  const auto see_some = [&](const std::uint8_t* rgb, std::size_t count) __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) {
      block.red[i] = rgb[3 * i];
      block.green[i] = rgb[3 * i + 1];
      block.blue[i] = rgb[3 * i + 2];
    }
    see(block, count);
  };
  std::size_t start = 0;
  for (; start + kBlock * 3 <= pixels.size(); start += kBlock * 3) see_some(&pixels[start], kBlock);
  if (start < pixels.size()) see_some(&pixels[start], (pixels.size() - start) / 3);
}

// Calls change(block) for all pixels, and keeps what it makes of them.
template <typename Change>
[[gnu::always_inline]] inline void change_blocks(Change change, Pixels pixels) {
  std::uint8_t* rgb = pixels.data();
  const auto change_some = [&](Block & block, std::size_t count) __attribute__((always_inline)) {
    change(block);
    for (std::size_t i = 0; i < count; ++i) {
      rgb[3 * i] = block.red[i];
      rgb[3 * i + 1] = block.green[i];
      rgb[3 * i + 2] = block.blue[i];
    }
    rgb += 3 * count;
  };
  see_blocks(change_some, pixels);
}

}  // namespace sluice::pipeline
