// Against Pillow's steps, one pixel after the other, with the precision that each has there;
// torch_conformance_test.py compares whole images with Pillow itself.
#include "src/pipeline/ops/hue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Pixel = std::array<int, 3>;

struct HueSaturationValue {
  int hue, saturation, value;
};

HueSaturationValue hsv_by_definition(const Pixel& rgb) {
  const auto [red, green, blue] = rgb;
  const int largest = std::max({red, green, blue});
  const int range = largest - std::min({red, green, blue});
  if (range == 0) return {0, 0, largest};
  const auto distance = [&](int level) { return static_cast<float>(largest - level) / static_cast<float>(range); };
  const float r = distance(red), g = distance(green), b = distance(blue);
  const float saturation = static_cast<float>(range) / static_cast<float>(largest);
  const float sixths = red == largest     ? b - g
                       : green == largest ? static_cast<float>(2.0 + double{r} - double{b})
                                          : static_cast<float>(4.0 + double{g} - double{r});
  const auto hue = static_cast<float>(std::fmod(double{sixths} / 6.0 + 1.0, 1.0));
  return {static_cast<int>(double{hue} * 255.0), static_cast<int>(double{saturation} * 255.0), largest};
}

Pixel rgb_by_definition(const HueSaturationValue& hsv) {
  const auto [hue, saturation, value] = hsv;
  if (saturation == 0) return {value, value, value};
  const double place = hue * 6.0 / 255.0;
  const double sector = std::floor(place);
  const auto rest = static_cast<float>(place - sector);
  const auto share = static_cast<float>(saturation / 255.0);
  const auto level = [value = value](double part) { return static_cast<int>(std::round(value * part)); };
  const int p = level(1.0 - double{share});
  const int q = level(1.0 - double{share} * double{rest});
  const int t = level(1.0 - double{share} * (1.0 - double{rest}));
  const std::array<Pixel, 6> sectors{
      {{value, t, p}, {q, value, p}, {p, value, t}, {p, q, value}, {t, p, value}, {value, p, q}}};
  return sectors[static_cast<std::size_t>(sector) % 6];
}

void append(const Pixel& pixel, Bytes& pixels) {
  for (const int level : pixel) pixels.push_back(static_cast<std::uint8_t>(level));
}

// In all orders of the channels.
void append_orders(Pixel pixel, Bytes& pixels) {
  std::sort(pixel.begin(), pixel.end());
  do append(pixel, pixels);
  while (std::next_permutation(pixel.begin(), pixel.end()));
}

// A hue depends on the order and on how far the channel in the middle lies between the others. Here is all of that.
Bytes pixels_of_all_hues() {
  Bytes pixels;
  for (int range = 0; range < 256; ++range) {
    for (int middle = 0; middle <= range; ++middle) append_orders({0, middle, range}, pixels);
  }
  return pixels;
}

// All pairs of the largest and the smallest channel, each with some others between them.
Bytes pixels_of_all_saturations() {
  Bytes pixels;
  for (int largest = 0; largest < 256; ++largest) {
    for (int smallest = 0; smallest <= largest; ++smallest) {
      const int middle = smallest + (largest * 31 + smallest * 17) % (largest - smallest + 1);
      append_orders({smallest, middle, largest}, pixels);
    }
  }
  return pixels;
}

void check_turned(std::int32_t turn, const Bytes& pixels) {
  Bytes want;
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    HueSaturationValue hsv = hsv_by_definition({pixels[i], pixels[i + 1], pixels[i + 2]});
    hsv.hue = (hsv.hue + turn) & 255;
    append(rgb_by_definition(hsv), want);
  }
  for (const Registers registers : {Registers::kEveryProcessors, Registers::kWidest}) {
    Bytes turned = pixels;
    turn_hues(turn, turned, registers);
    CHECK((turned == want));  // of so many bytes none is to be printed
  }
}

TEST_CASE("every hue is Pillow's") { check_turned(0, pixels_of_all_hues()); }

TEST_CASE("turned pixels of every saturation and value are Pillow's") {
  for (const std::int32_t turn : {-127, -51, 1, 90}) {
    CAPTURE(turn);
    check_turned(turn, pixels_of_all_saturations());
  }
}

TEST_CASE("images of any size are turned to their last pixel") {
  const Bytes all = pixels_of_all_hues();
  for (const std::size_t count : {0, 1, 63, 64, 65, 191, 1000}) {
    CAPTURE(count);
    check_turned(25, Bytes(all.end() - static_cast<std::ptrdiff_t>(3 * count), all.end()));
  }
}

}  // namespace
}  // namespace sluice::pipeline
