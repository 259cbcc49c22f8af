// The pixels of decoded images as bytes, and random boxes of images: what the tests of decoders compare and draw.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "src/pipeline/geometry.h"
#include "src/pipeline/rgb_view.h"

namespace sluice::pipeline::testing {

// Row by row, without the gaps between rows.
inline std::vector<std::uint8_t> pixels_of(const RgbView& view) {
  const std::size_t row_bytes = static_cast<std::size_t>(view.size.width) * 3;
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < view.size.height; ++y) pixels.insert(pixels.end(), view.row(y), view.row(y) + row_bytes);
  return pixels;
}

class Random {
 public:
  explicit Random(std::uint32_t seed) : generator_(seed) {}
  int below(int bound) { return static_cast<int>(generator_() % static_cast<std::uint32_t>(bound)); }
  Box box(ImageSize size) {
    Box box{below(size.height), below(size.width), 1, 1};
    box.height += below(size.height - box.top);
    box.width += below(size.width - box.left);
    return box;
  }

 private:
  std::mt19937 generator_;
};

}  // namespace sluice::pipeline::testing
