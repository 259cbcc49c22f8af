#include "src/pipeline/ops/tensor_color.h"

#include <cmath>

#include "src/pipeline/ops/pixel_blocks.h"

namespace sluice::pipeline {
namespace {

#define SLUICE_INLINE [[gnu::always_inline]] inline

struct Shares {
  float to;
  float from;
};

Shares shares_of(float factor) { return {factor, static_cast<float>(1.0 - static_cast<double>(factor))}; }

SLUICE_INLINE std::uint8_t mixed(float from, std::uint8_t to, const Shares& shares) {
  const float sum = std::fma(shares.from, from, shares.to * static_cast<float>(to));
  return static_cast<std::uint8_t>(smaller(larger(static_cast<std::int32_t>(sum), 0), 255));
}

SLUICE_INLINE std::int32_t grey_of(std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  const float of_red = static_cast<float>(red) * 0.2989F;
  return static_cast<std::int32_t>(
      std::fma(static_cast<float>(blue), 0.114F, std::fma(static_cast<float>(green), 0.587F, of_red)));
}

SLUICE_INLINE void mix_all_with_level(float level, const Shares& shares, Pixels pixels) {
  for (std::uint8_t& byte : pixels) byte = mixed(level, byte, shares);
}

SLUICE_INLINE void mix_all_with_greys(const Shares& shares, Pixels pixels) {
  const auto mix = [&shares](Block & block) __attribute__((always_inline)) {
    for (std::size_t i = 0; i < kBlock; ++i) {
      const auto grey = static_cast<float>(grey_of(block.red[i], block.green[i], block.blue[i]));
      block.red[i] = mixed(grey, block.red[i], shares);
      block.green[i] = mixed(grey, block.green[i], shares);
      block.blue[i] = mixed(grey, block.blue[i], shares);
    }
  };
  change_blocks(mix, pixels);
}

SLUICE_INLINE void make_all_pixels_grey(Pixels pixels) {
  const auto make = [](Block & block) __attribute__((always_inline)) {
    for (std::size_t i = 0; i < kBlock; ++i) {
      const auto grey = static_cast<std::uint8_t>(grey_of(block.red[i], block.green[i], block.blue[i]));
      block.red[i] = block.green[i] = block.blue[i] = grey;
    }
  };
  change_blocks(make, pixels);
}

SLUICE_INLINE std::int64_t add_up_greys(std::span<const std::uint8_t> pixels) {
  std::int64_t sum = 0;
  const auto add = [&sum](const Block& block, std::size_t count) __attribute__((always_inline)) {
    std::int32_t block_sum = 0;
    for (std::size_t i = 0; i < count; ++i) block_sum += grey_of(block.red[i], block.green[i], block.blue[i]);
    sum += block_sum;
  };
  see_blocks(add, pixels);
  return sum;
}

// Of a pixel's channels, of which a hue turns two or three: those that are largest and smallest have two values, and
// the others have what lies between them.
struct Turned {
  std::int32_t sector;  // of the circle's six, from red; 6 is 0
  std::int32_t largest;
  std::int32_t between;
  std::int32_t smallest;
};

// The steps are torchvision's, each of which rounds. It has a rest for each channel; those of the largest and of the
// smallest are 0 and 1.
SLUICE_INLINE Turned turned(float turn, std::int32_t red, std::int32_t green, std::int32_t blue) {
  constexpr float kScale = 1.0F / 255.0F;
  constexpr float kBack = 255.999F;
  const std::int32_t largest = larger(larger(red, green), blue);
  const std::int32_t smallest = smaller(smaller(red, green), blue);
  const bool is_grey = largest == smallest;
  const float value = static_cast<float>(largest) * kScale;
  const float middle = static_cast<float>(red + green + blue - largest - smallest) * kScale;
  const float range = value - static_cast<float>(smallest) * kScale;
  const float saturation = range / chosen(is_grey, 1.0F, value);
  const float rest = (value - middle) / chosen(is_grey, 1.0F, range);
  const bool blue_is_smallest = blue == smallest;
  const float from_red = chosen(blue_is_smallest, 1.0F - rest, rest - 1.0F);
  const float from_green = chosen(blue_is_smallest, (rest + 2.0F) - 1.0F, 3.0F - rest);
  const float from_blue = chosen(red == smallest, (rest + 4.0F) - 1.0F, 5.0F - rest);
  const float from_other = chosen(green == largest, from_green, from_blue);
  float hue = chosen(red == largest, from_red, from_other) * (1.0F / 6.0F) + 1.0F;
  hue = (hue - chosen(hue >= 1.0F, 1.0F, 0.0F)) + turn;
  hue += chosen(hue < 0.0F, 1.0F, chosen(hue >= 1.0F, -1.0F, 0.0F));
  const float sixths = hue * 6.0F;
  const auto sector = static_cast<std::int32_t>(sixths);
  const float part = saturation * (sixths - static_cast<float>(sector));
  const float least = 1.0F - saturation;
  const float between = chosen((sector & 1) != 0, 1.0F - part, part + least);
  return {sector, largest, static_cast<std::int32_t>((between * value) * kBack),
          static_cast<std::int32_t>((least * value) * kBack)};
}

SLUICE_INLINE std::uint8_t channel_of(const Turned& pixel, bool is_largest, bool is_smallest) {
  return static_cast<std::uint8_t>(
      chosen(is_largest, pixel.largest, chosen(is_smallest, pixel.smallest, pixel.between)));
}

SLUICE_INLINE void turn_all_hues(float turn, Pixels pixels) {
  const auto turn_block = [turn](Block & block) __attribute__((always_inline)) {
    for (std::size_t i = 0; i < kBlock; ++i) {
      const Turned pixel = turned(turn, block.red[i], block.green[i], block.blue[i]);
      const std::int32_t sector = chosen(pixel.sector == 6, 0, pixel.sector);
      block.red[i] = channel_of(pixel, (sector == 0) | (sector == 5), (sector == 2) | (sector == 3));
      block.green[i] = channel_of(pixel, (sector == 1) | (sector == 2), (sector == 4) | (sector == 5));
      block.blue[i] = channel_of(pixel, (sector == 3) | (sector == 4), (sector == 0) | (sector == 1));
    }
  };
  change_blocks(turn_block, pixels);
}

#if defined(__x86_64__)
#define SLUICE_FUSED __attribute__((target("avx2,fma")))

SLUICE_FUSED void mix_with_level_fused(float level, const Shares& shares, Pixels pixels) {
  mix_all_with_level(level, shares, pixels);
}
SLUICE_FUSED void mix_with_greys_fused(const Shares& shares, Pixels pixels) { mix_all_with_greys(shares, pixels); }
SLUICE_FUSED void make_pixels_grey_fused(Pixels pixels) { make_all_pixels_grey(pixels); }
SLUICE_FUSED std::int64_t add_up_greys_fused(std::span<const std::uint8_t> pixels) { return add_up_greys(pixels); }
SLUICE_FUSED void turn_hues_fused(float turn, Pixels pixels) { turn_all_hues(turn, pixels); }
#endif

std::int64_t sum_of_tensor_greys(std::span<const std::uint8_t> pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide_and_fused(registers)) return add_up_greys_fused(pixels);
#endif
  return add_up_greys(pixels);
}

}  // namespace

void blend_tensor_from_level(float level, float factor, Pixels pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide_and_fused(registers)) return mix_with_level_fused(level, shares_of(factor), pixels);
#endif
  mix_all_with_level(level, shares_of(factor), pixels);
}

void blend_tensor_from_greys(float factor, Pixels pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide_and_fused(registers)) return mix_with_greys_fused(shares_of(factor), pixels);
#endif
  mix_all_with_greys(shares_of(factor), pixels);
}

void make_tensor_grey(Pixels pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide_and_fused(registers)) return make_pixels_grey_fused(pixels);
#endif
  make_all_pixels_grey(pixels);
}

float mean_grey_of_tensor(std::span<const std::uint8_t> pixels, Registers registers) {
  return static_cast<float>(sum_of_tensor_greys(pixels, registers)) / static_cast<float>(pixels.size() / 3);
}

void turn_tensor_hues(float turn, Pixels pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide_and_fused(registers)) return turn_hues_fused(turn, pixels);
#endif
  turn_all_hues(turn, pixels);
}

}  // namespace sluice::pipeline
