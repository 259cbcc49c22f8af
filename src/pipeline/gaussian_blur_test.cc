// Whole images against a loop that says what torch computes; test_image_changes.py compares with torch itself.
#include "src/pipeline/gaussian_blur.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/gaussian_weights.h"

namespace sluice::pipeline {
namespace {

using testing::gaussian_weights;

constexpr ImageSize kSize{21, 34};

std::vector<std::uint8_t> noise_at(ImageSize size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width) * 3);
  for (std::uint8_t& byte : pixels) byte = static_cast<std::uint8_t>(random());
  return pixels;
}

std::vector<float> sums_by_definition(ImageSize size, const std::vector<std::uint8_t>& pixels,
                                      const BlurWindow& window) {
  const auto mirrored = [](int at, int side) { return at < 0 ? -at : at >= side ? 2 * side - 2 - at : at; };
  const int rows = static_cast<int>(window.rows);
  const int columns = static_cast<int>(window.columns);
  std::vector<float> sums;
  for (int i = 0; i < size.height * size.width * 3; ++i) {
    float sum = 0;
    for (int k = 0; k < rows * columns; ++k) {
      const int y = mirrored(i / 3 / size.width + k / columns - rows / 2, size.height);
      const int x = mirrored(i / 3 % size.width + k % columns - columns / 2, size.width);
      const auto at = static_cast<std::size_t>((y * size.width + x) * 3 + i % 3);
      sum = std::fma(window.weights[static_cast<std::size_t>(k)], static_cast<float>(pixels[at]), sum);
    }
    sums.push_back(sum);
  }
  return sums;
}

TEST_CASE("every blurred byte is the rounded sum of the window") {
  struct Case {
    const char* name;
    ImageSize size;
    std::size_t rows, columns;
    double sigma;
  };
  const Case cases[] = {
      {"SimCLR's window", {40, 50}, 23, 23, 1.3},
      {"hardly any blur", kSize, 23, 5, 0.1},
      {"flat weights", kSize, 9, 11, 100},
      {"a window of one pixel", kSize, 1, 1, 1},
      {"one row", {1, 70}, 1, 3, 0.8},
      {"as far as the borders mirror", {5, 6}, 9, 11, 2},
      {"one column", {90, 1}, 7, 1, 1.1},
      {"weights that vanish at the sides", {48, 65}, 23, 23, 0.6},
      {"two blocks and a pixel", {13, 43}, 5, 5, 1.9},
      {"more rows than the image", {3, 64}, 5, 3, 0.7},
  };
  GaussianBlur blur;
  for (const Case& test : cases) {
    CAPTURE(test.name);
    const auto pixels = noise_at(test.size, 1);
    const auto weights = gaussian_weights(test.rows, test.columns, test.sigma);
    const BlurWindow window{test.rows, test.columns, weights};
    REQUIRE(can_blur(test.size, window));
    const std::vector<float> expected = sums_by_definition(test.size, pixels, window);
    std::vector<std::uint8_t> rounded;
    for (const float sum : expected) rounded.push_back(static_cast<std::uint8_t>(std::nearbyint(sum)));
    for (const Registers registers : {Registers::kEveryProcessors, Registers::kWidest}) {
      std::vector<float> sums(pixels.size());
      blur.sums(test.size, pixels, window, sums, registers);
      CHECK(sums == expected);
      std::vector<std::uint8_t> blurred(pixels.size());
      blur.blur(test.size, pixels, window, blurred, registers);
      CHECK(blurred == rounded);
    }
  }
}

TEST_CASE("sums halfway between two bytes go to the even one") {
  const std::vector<std::uint8_t> pixels{10, 11, 12, 11, 12, 13};  // two pixels
  const std::vector<float> weights{0.25F, 0.5F, 0.25F};            // the mirror shows the other pixel on both sides
  std::vector<std::uint8_t> blurred(6);
  GaussianBlur().blur({1, 2}, pixels, {1, 3, weights}, blurred);
  CHECK(blurred == std::vector<std::uint8_t>{10, 12, 12, 10, 12, 12});
}

TEST_CASE("a window that is no product of a column and a row gives its own sums, too") {
  auto weights = gaussian_weights(3, 3, 1);
  std::swap(weights[0], weights[4]);
  const BlurWindow window{3, 3, weights};
  const auto pixels = noise_at(kSize, 2);
  std::vector<std::uint8_t> blurred(pixels.size());
  GaussianBlur().blur(kSize, pixels, window, blurred);
  const auto sums = sums_by_definition(kSize, pixels, window);
  CHECK(std::equal(sums.begin(), sums.end(), blurred.begin(), [](float sum, std::uint8_t byte) {
    return static_cast<std::uint8_t>(std::nearbyint(sum)) == byte;
  }));
}

TEST_CASE("windows that no blur of the image has are refused") {
  const std::vector<float> even(12, 0.01F);
  const std::vector<float> many(std::size_t{45} * 3, 0.001F);
  const std::vector<float> heavy(9, 0.2F);
  std::vector<float> negative(9, 0.1F);
  negative[3] = -0.1F;
  std::vector<float> no_number(9, 0.1F);
  no_number[8] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(can_blur(kSize, {3, 4, even}));
  CHECK_FALSE(can_blur(kSize, {45, 3, many}));
  CHECK_FALSE(can_blur(kSize, {3, 3, many}));
  CHECK_FALSE(can_blur(kSize, {3, 3, heavy}));
  CHECK_FALSE(can_blur(kSize, {3, 3, negative}));
  CHECK_FALSE(can_blur(kSize, {3, 3, no_number}));
  CHECK_FALSE(can_blur({0, 34}, {1, 1, std::span(even).first(1)}));
}

}  // namespace
}  // namespace sluice::pipeline
