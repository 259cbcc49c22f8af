#include "src/pipeline/blur_window.h"

#include <cmath>
#include <cstdint>
#include <random>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/gaussian_weights.h"

namespace sluice::pipeline {
namespace {

using testing::gaussian_weights;

TEST_CASE("a window loses the rows and columns of zeros at its sides, and none between others") {
  const std::vector<float> weights{0, 0,    0, 0,     0,  //
                                   0, 0.5F, 0, 0,     0,  //
                                   0, 0,    0, 0,     0,  //
                                   0, 0,    0, 0.25F, 0,  //
                                   0, 0,    0, 0,     0};
  const TrimmedWindow trimmed({5, 5, weights});
  CHECK((trimmed.top == 1 && trimmed.left == 1 && trimmed.rows == 3 && trimmed.columns == 3));
  CHECK(trimmed.weights == std::vector<float>{0.5F, 0, 0, 0, 0, 0, 0, 0, 0.25F});
}

TEST_CASE("a window of zeros keeps one of them") {
  const std::vector<float> zeros(9, 0);
  CHECK(TrimmedWindow({3, 3, zeros}).weights.size() == 1);
  CHECK(BlurPasses({3, 3, zeros}).column().weights.size() == 1);
}

TEST_CASE("passes leave out the weights that no byte can show") {
  const auto weights = gaussian_weights(23, 23, 1);
  const BlurPasses passes({23, 23, weights});
  CHECK(passes.column().first == 6);
  CHECK(passes.column().weights.size() == 11);
  CHECK(passes.row().at(5) == 0);
  CHECK(passes.row().at(11) > 0.39);
}

struct Sums {
  float exact, of_passes;
};

// Of the bytes that `byte_at` gives for each place of the window.
template <typename ByteAt>
Sums sums_of(const BlurWindow& window, const BlurPasses& passes, const ByteAt& byte_at) {
  Sums sums{};
  for (std::size_t y = 0; y < window.rows; ++y) {
    float across = 0;
    for (std::size_t x = 0; x < window.columns; ++x) {
      sums.exact = std::fma(window.weights[y * window.columns + x], byte_at(y, x), sums.exact);
      across += static_cast<float>(passes.row().at(x)) * byte_at(y, x);
    }
    sums.of_passes += static_cast<float>(passes.column().at(y)) * across;
  }
  return sums;
}

TEST_CASE("sums of two passes lie no further from the window's than the weights say") {
  std::mt19937 random(1);
  for (const double sigma : {0.1, 0.4, 0.8, 1.3, 2.0, 9.0, 100.0}) {
    const auto weights = gaussian_weights(23, 23, sigma);
    const BlurWindow window{23, 23, weights};
    const BlurPasses passes(window);
    const BlurUncertainty uncertainty = passes.uncertainty(window);
    CHECK((uncertainty.dark < uncertainty.light && uncertainty.light < 0.01));
    for (const std::uint32_t most : {2U, 120U, 256U}) {
      for (int image = 0; image < 200; ++image) {
        CAPTURE(sigma, most, image);
        std::vector<float> bytes(weights.size());
        for (float& byte : bytes) byte = static_cast<float>(255 - random() % most * static_cast<unsigned>(image % 2));
        if (image % 4 < 2) {
          for (float& byte : bytes) byte = 255 - byte;
        }
        const Sums sums = sums_of(window, passes, [&](std::size_t y, std::size_t x) { return bytes[y * 23 + x]; });
        const float bound = sums.of_passes < BlurUncertainty::kDarkMost ? uncertainty.dark : uncertainty.light;
        REQUIRE(std::abs(sums.exact - sums.of_passes) <= bound);
      }
    }
  }
}

TEST_CASE("of a window that is no product, sums are as uncertain as it is far from one") {
  auto weights = gaussian_weights(3, 3, 1);
  std::swap(weights[0], weights[4]);
  const BlurWindow window{3, 3, weights};
  CHECK(BlurPasses(window).uncertainty(window).dark > 10);
}

}  // namespace
}  // namespace sluice::pipeline
