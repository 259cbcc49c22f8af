// By hand, on images of few pixels; torch_conformance_test.py compares whole images with Pillow.
#include "src/pipeline/ops/affine.h"

#include <string>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/jpeg_encoder.h"

namespace sluice::pipeline {
namespace {

constexpr AffineStyle kDots{Interpolation::kNearest, {'.', '.', '.'}};

// An image of letters, one for each pixel, row after row.
class Letters {
 public:
  Letters(ImageSize size, const std::string& letters) : size_(size) {
    const std::vector<std::uint8_t> file = testing::encode_picture(size, {});
    REQUIRE(buffers_.decoder.open(file).ok());
    image_.emplace(size, PassOrder::kWidthFirst, buffers_);
    auto pixels = image_->pixels();
    REQUIRE(pixels.ok());
    for (std::size_t i = 0; i < pixels->size(); ++i) (*pixels)[i] = static_cast<std::uint8_t>(letters[i / 3]);
  }

  PlannedImage& image() { return *image_; }

  std::string text() {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size_.height * size_.width) * 3);
    REQUIRE(image_->write_to(bytes).ok());
    std::string letters;
    for (std::size_t i = 0; i < bytes.size(); i += 3) letters += static_cast<char>(bytes[i]);
    return letters;
  }

 private:
  ImageSize size_;
  ImageBuffers buffers_;
  std::optional<PlannedImage> image_;
};

TEST_CASE("rotations of a square by right angles move its pixels") {
  for (const auto& [degrees, want] : {std::pair{0.0, "abcd"}, std::pair{90.0, "bdac"}, std::pair{-90.0, "cadb"},
                                      std::pair{180.0, "dcba"}, std::pair{-540.0, "dcba"}, std::pair{720.0, "abcd"}}) {
    CAPTURE(degrees);
    Letters letters({2, 2}, "abcd");
    REQUIRE(rotate(degrees, kDots, letters.image()).ok());
    CHECK(letters.text() == want);
  }
}

TEST_CASE("a right angle of another shape fills what lies outside") {
  Letters letters({1, 3}, "abc");
  REQUIRE(rotate(90, kDots, letters.image()).ok());
  CHECK(letters.text() == ".b.");
}

TEST_CASE("a translation by whole pixels is exact, with both interpolations") {
  for (const Interpolation interpolation : {Interpolation::kNearest, Interpolation::kBilinear}) {
    Letters letters({2, 3}, "abcdef");
    REQUIRE(transform(translation_map(1, -1), {interpolation, {'.', '.', '.'}}, letters.image()).ok());
    CHECK(letters.text() == ".de...");
  }
}

TEST_CASE("a shear moves each row by its distance from the top") {
  Letters letters({3, 3}, "abcdefghi");
  REQUIRE(transform(shear_map(std::atan(1.0), 0), kDots, letters.image()).ok());
  CHECK(letters.text() == "bc.f.....");
}

TEST_CASE("a shear down moves each column") {
  Letters letters({3, 3}, "abcdefghi");
  REQUIRE(transform(shear_map(0, std::atan(-1.0)), kDots, letters.image()).ok());
  CHECK(letters.text() == "a..db.gec");
}

TEST_CASE("a map beyond Pillow's fixed point is refused") {
  Letters letters({2, 2}, "abcd");
  const auto done = transform(translation_map(40000, 0), kDots, letters.image());
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().message() == "an affine map is too large for an image of 2x2");
}

}  // namespace
}  // namespace sluice::pipeline
