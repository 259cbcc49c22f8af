// torchvision's adjust_hue on PIL images: to Pillow's 8-bit HSV, a turn of H, and back.
#include <algorithm>
#include <array>
#include <bit>

#include "src/pipeline/ops/enhance.h"

namespace sluice::pipeline {
namespace {

constexpr std::size_t kBlock = 64;  // pixels

// The loops over it have no branches, so that they become vectors.
struct Block {
  std::array<std::int32_t, kBlock> red;
  std::array<std::int32_t, kBlock> green;
  std::array<std::int32_t, kBlock> blue;
  std::array<std::int32_t, kBlock> hue;
  std::array<std::int32_t, kBlock> saturation;
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

// round() of a number from 0 to 255.
[[gnu::always_inline]] inline std::int32_t rounded(double value) {
  const auto whole = static_cast<std::int32_t>(value);
  return whole + static_cast<std::int32_t>(value - static_cast<double>(whole) >= 0.5);
}

// As Python's colorsys, in float32 but for the steps that C makes double. A grey pixel has a hue and a saturation of 0.
[[gnu::always_inline]] inline void find_hues(Block& block) {
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::int32_t r = block.red[i];
    const std::int32_t g = block.green[i];
    const std::int32_t b = block.blue[i];
    const std::int32_t largest = larger(larger(r, g), b);
    const std::int32_t range = largest - smaller(smaller(r, g), b);
    const auto divisor = static_cast<float>(larger(range, 1));
    const float red = static_cast<float>(largest - r) / divisor;
    const float green = static_cast<float>(largest - g) / divisor;
    const float blue = static_cast<float>(largest - b) / divisor;
    const auto behind_green = static_cast<float>(2.0 + static_cast<double>(red) - static_cast<double>(blue));
    const auto behind_blue = static_cast<float>(4.0 + static_cast<double>(green) - static_cast<double>(red));
    const float sixths = chosen(r == largest, blue - green, chosen(g == largest, behind_green, behind_blue));
    // The rest behind the point: fmod(turned, 1.0).
    const double turned = static_cast<double>(sixths) / 6.0 + 1.0;
    const auto hue = static_cast<float>(turned - static_cast<double>(static_cast<std::int32_t>(turned)));
    const float saturation = static_cast<float>(range) / static_cast<float>(larger(largest, 1));
    block.hue[i] = static_cast<std::int32_t>(static_cast<double>(hue) * 255.0);
    block.saturation[i] = static_cast<std::int32_t>(static_cast<double>(saturation) * 255.0);
  }
}

[[gnu::always_inline]] inline void turn_hues(std::int32_t turn, Block& block) {
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::int32_t v = larger(larger(block.red[i], block.green[i]), block.blue[i]);
    const std::int32_t hue = (block.hue[i] + turn) & 255;
    const double place = static_cast<double>(hue) * 6.0 / 255.0;
    const auto sector = static_cast<std::int32_t>(place);  // 6 is 0
    const auto rest = static_cast<double>(static_cast<float>(place - static_cast<double>(sector)));
    const auto saturation = static_cast<double>(static_cast<float>(static_cast<double>(block.saturation[i]) / 255.0));
    const auto value = static_cast<double>(v);
    const std::int32_t p = rounded(value * (1.0 - saturation));
    const std::int32_t q = rounded(value * (1.0 - saturation * rest));
    const std::int32_t t = rounded(value * (1.0 - saturation * (1.0 - rest)));
    block.red[i] = chosen(sector == 1, q, chosen(sector == 4, t, chosen((sector == 2) | (sector == 3), p, v)));
    block.green[i] =
        chosen((sector == 1) | (sector == 2), v, chosen(sector == 3, q, chosen((sector == 4) | (sector == 5), p, t)));
    block.blue[i] = chosen(sector == 2, t, chosen((sector == 3) | (sector == 4), v, chosen(sector == 5, q, p)));
  }
}

[[gnu::always_inline]] inline void turn_all(std::int32_t turn, Pixels pixels) {
  Block block{};
  for (std::size_t start = 0; start < pixels.size(); start += kBlock * 3) {
    std::uint8_t* const rgb = &pixels[start];
    const std::size_t count = std::min(kBlock, (pixels.size() - start) / 3);
    for (std::size_t i = 0; i < count; ++i) {
      block.red[i] = rgb[3 * i];
      block.green[i] = rgb[3 * i + 1];
      block.blue[i] = rgb[3 * i + 2];
    }
    find_hues(block);
    turn_hues(turn, block);
    for (std::size_t i = 0; i < count; ++i) {
      rgb[3 * i] = static_cast<std::uint8_t>(block.red[i]);
      rgb[3 * i + 1] = static_cast<std::uint8_t>(block.green[i]);
      rgb[3 * i + 2] = static_cast<std::uint8_t>(block.blue[i]);
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void turn_all_avx2(std::int32_t turn, Pixels pixels) { turn_all(turn, pixels); }
#endif

}  // namespace

void adjust_hue(float factor, Pixels pixels) {
  const auto turn = static_cast<std::int32_t>(static_cast<double>(factor) * 255.0);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return turn_all_avx2(turn, pixels);
#endif
  turn_all(turn, pixels);
}

}  // namespace sluice::pipeline
