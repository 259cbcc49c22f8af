// Pillow computes partly in double precision. Here is float32 alone, which takes half of the time. The bytes are the
// same because there are few cases: a hue depends on which channels are the largest and the smallest and on two
// differences, a saturation on two bytes, and a channel of the result on three. hue_test.cc compares them.
#include "src/pipeline/ops/hue.h"

#include "src/pipeline/ops/pixel_blocks.h"

namespace sluice::pipeline {
namespace {

// Pillow's H of a pixel, whose share of the circle is a float. Grey pixels have any.
[[gnu::always_inline]] inline std::int32_t hue_of(std::int32_t r, std::int32_t g, std::int32_t b, std::int32_t largest,
                                                  std::int32_t smallest) {
  const std::int32_t middle = r + g + b - largest - smallest;
  const float rest = static_cast<float>(largest - middle) / static_cast<float>(larger(largest - smallest, 1));
  const bool is_red = r == largest;
  const bool is_blue = !is_red & (g != largest);
  // Sixths of the circle, from red: towards magenta they are below zero.
  const bool blue_is_smallest = b == smallest;
  const float from_red = chosen(blue_is_smallest, 1.0F - rest, rest - 1.0F);
  const float from_green = chosen(blue_is_smallest, 1.0F + rest, 3.0F - rest);
  const float from_blue = chosen(r == smallest, 3.0F + rest, 5.0F - rest);
  const float sixths = chosen(is_red, from_red, chosen(is_blue, from_blue, from_green));
  const auto hue = static_cast<std::int32_t>(sixths * 42.5F + chosen(sixths < 0.0F, 255.0F, 0.0F));
  // Behind a half circle the share has a rounding of its own, which counts where 255 times it is nearly whole.
  const auto share = static_cast<std::uint32_t>(static_cast<std::int32_t>(sixths / 6.0F * 0x1p24F));
  const auto blue_hue = static_cast<std::int32_t>(((share << 8) - share) >> 24);
  return chosen(is_blue, blue_hue, hue);
}

// A channel loses none, all or a part of the colour, depending on how far the hue is from it. `colour`: what the
// smallest channel loses, in shares of 255. `part`: of 255, clipped here.
[[gnu::always_inline]] inline std::uint8_t channel_of(std::int32_t value, float colour, std::int32_t part) {
  const auto clipped = static_cast<float>(smaller(larger(part, 0), 255));
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(static_cast<float>(value) - colour * clipped + 0.5F));
}

[[gnu::always_inline]] inline void turn_block(std::int32_t turn, Block& block) {
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::int32_t r = block.red[i];
    const std::int32_t g = block.green[i];
    const std::int32_t b = block.blue[i];
    const std::int32_t value = larger(larger(r, g), b);
    const std::int32_t smallest = smaller(smaller(r, g), b);
    const std::int32_t hue = (hue_of(r, g, b, value, smallest) + turn) & 255;
    const auto saturation =
        static_cast<std::int32_t>(static_cast<float>((value - smallest) * 255) / static_cast<float>(larger(value, 1)));
    const float colour = static_cast<float>(saturation * value) * (1.0F / 65025.0F);
    const std::int32_t place = hue * 6;  // 255 for each sixth
    block.red[i] = channel_of(value, colour, smaller(place - 255, 1275 - place));
    block.green[i] = channel_of(value, colour, larger(255 - place, place - 765));
    block.blue[i] = channel_of(value, colour, larger(765 - place, place - 1275));
  }
}

[[gnu::always_inline]] inline void turn_all(std::int32_t turn, Pixels pixels) {
  change_blocks(
      [turn](Block & block) __attribute__((always_inline)) { turn_block(turn, block); }, pixels);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void turn_all_avx2(std::int32_t turn, Pixels pixels) { turn_all(turn, pixels); }
#endif

}  // namespace

void turn_hues(std::int32_t turn, Pixels pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide(registers)) return turn_all_avx2(turn, pixels);
#endif
  turn_all(turn, pixels);
}

}  // namespace sluice::pipeline
