// Known values are torchvision's own; tensor_conformance_test.py compares all colours with it.
#include "src/pipeline/ops/tensor_color.h"

#include <cmath>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr Registers kAllRegisters[] = {Registers::kEveryProcessors, Registers::kWidest};
constexpr std::size_t kPixelCounts[] = {0, 1, 63, 64, 65, 1000};  // whole blocks and rests

// A share of all colours, of which no two beside each other are alike.
Bytes many_colours(std::size_t count) {
  Bytes pixels(3 * count);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>((i * 7919 / 8 + i / 256 * 31) % 256);
  return pixels;
}

template <typename Change>
Bytes changed(Change change, Bytes pixels) {
  change(Pixels(pixels));
  return pixels;
}

TEST_CASE("a tensor's colours are torchvision's") {
  const Bytes colours{250, 9, 228, 30, 200, 90, 255, 255, 255, 7, 7, 7};
  const auto made = [&](auto change) { return changed(change, colours); };
  for (const Registers registers : kAllRegisters) {
    CHECK(made([&](Pixels pixels) { make_tensor_grey(pixels, registers); }) ==
          Bytes{105, 105, 105, 136, 136, 136, 254, 254, 254, 6, 6, 6});
    CHECK(made([&](Pixels pixels) { blend_tensor_from_level(0, 1.3F, pixels, registers); }) ==
          Bytes{255, 11, 255, 39, 255, 116, 255, 255, 255, 9, 9, 9});
    CHECK(made([&](Pixels pixels) { blend_tensor_from_level(125.75F, 0.7F, pixels, registers); }) ==
          Bytes{212, 44, 197, 58, 177, 100, 216, 216, 216, 42, 42, 42});
    CHECK(made([&](Pixels pixels) { blend_tensor_from_greys(1.4F, pixels, registers); }) ==
          Bytes{255, 0, 255, 0, 225, 71, 255, 255, 255, 7, 7, 7});
    CHECK(made([&](Pixels pixels) { turn_tensor_hues(0.1F, pixels, registers); }) ==
          Bytes{250, 9, 83, 30, 200, 192, 255, 255, 255, 7, 7, 7});
    CHECK(made([&](Pixels pixels) { turn_tensor_hues(-0.5F, pixels, registers); }) ==
          Bytes{9, 250, 31, 200, 30, 140, 255, 255, 255, 7, 7, 7});
    CHECK(mean_grey_of_tensor(colours, registers) == 125.25F);
  }
}

TEST_CASE("images of any size change to their last pixel, whatever the processor does at a time") {
  for (const std::size_t count : kPixelCounts) {
    CAPTURE(count);
    const Bytes before = many_colours(count);
    const auto compare = [&](auto change) {
      Bytes want;
      for (std::size_t i = 0; i < before.size(); i += 3) {
        Bytes pixel(before.begin() + static_cast<std::ptrdiff_t>(i),
                    before.begin() + static_cast<std::ptrdiff_t>(i) + 3);
        change(Pixels(pixel), Registers::kEveryProcessors);
        want.insert(want.end(), pixel.begin(), pixel.end());
      }
      for (const Registers registers : kAllRegisters)
        CHECK(changed([&](Pixels pixels) { change(pixels, registers); }, before) == want);
    };
    compare([](Pixels pixels, Registers registers) { make_tensor_grey(pixels, registers); });
    compare([](Pixels pixels, Registers registers) { blend_tensor_from_level(99.3F, 1.7F, pixels, registers); });
    compare([](Pixels pixels, Registers registers) { blend_tensor_from_greys(0.3F, pixels, registers); });
    compare([](Pixels pixels, Registers registers) { turn_tensor_hues(0.3F, pixels, registers); });
  }
}

TEST_CASE("a sum is rounded once with its product") {
  // 0.2989 * 20, rounded, and 0.587 * 152: rounded by themselves they make less than 96.
  Bytes pixel{20, 152, 7};
  make_tensor_grey(pixel);
  CHECK(pixel == Bytes{96, 96, 96});
  CHECK(static_cast<int>(20 * 0.2989F + 152 * 0.587F + 7 * 0.114F) == 95);
}

TEST_CASE("factors beyond 1 and colours beyond white are clipped") {
  for (const Registers registers : kAllRegisters) {
    Bytes pixels{0, 1, 255, 9, 9, 9};
    blend_tensor_from_level(200, 1e6F, pixels, registers);
    CHECK(pixels == Bytes{0, 0, 255, 0, 0, 0});
  }
}

TEST_CASE("a mean is exact of as many pixels as its limit says") {
  const Bytes white(3 * static_cast<std::size_t>(kMostPixelsOfExactMean), 255);
  for (const Registers registers : kAllRegisters) CHECK(mean_grey_of_tensor(white, registers) == 254.0F);
  CHECK(kMostPixelsOfExactMean * 254 <= 1 << 24);
}

TEST_CASE("no hue turns a grey pixel, and no turn changes a colour by more than its rounding") {
  Bytes greys;
  for (int level = 0; level < 256; ++level) greys.insert(greys.end(), 3, static_cast<std::uint8_t>(level));
  for (const float turn : {-0.5F, -1e-8F, 0.0F, 0.25F, 0.5F})
    CHECK(changed([&](Pixels pixels) { turn_tensor_hues(turn, pixels); }, greys) == greys);
  const Bytes colours = many_colours(1000);
  const Bytes turned = changed([](Pixels pixels) { turn_tensor_hues(0, pixels); }, colours);
  for (std::size_t i = 0; i < colours.size(); ++i) CHECK(std::abs(colours[i] - turned[i]) <= 1);
}

}  // namespace
}  // namespace sluice::pipeline
