// torchvision's gaussian_blur of RGB pixels, byte for byte: a convolution with mirrored borders, in float32.
//
// torch adds the products of a pixel's window up row by row, each by a fused multiply-addition from zero, and rounds
// the sum to the nearest byte, halves to the even one. Doing that for each pixel takes height times width of the
// window. A Gaussian window is (nearly) the product of a column and a row, so two passes with those give almost the
// same sum for much less. Only where the two could round to different bytes (blur_window.h) is torch's own sum
// computed.
//
// Thread safety: none; each thread has its own. Memory: the buffers grow to the largest image seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/pipeline/blur_window.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/registers.h"

namespace sluice::pipeline {

// Whether the window is one for an image of this size: it has odd sides, the borders can be mirrored as far as it
// reaches, and the weights are not below zero and sum to about one at most.
bool can_blur(ImageSize size, const BlurWindow& window);

class GaussianBlur {
 public:
  // REQUIRES of both: can_blur(size, window), and 3 bytes or sums for each pixel of `size`
  void blur(ImageSize size, std::span<const std::uint8_t> pixels, const BlurWindow& window,
            std::span<std::uint8_t> blurred, Registers registers = Registers::kWidest);

  // torch's sums themselves, before they are rounded.
  void sums(ImageSize size, std::span<const std::uint8_t> pixels, const BlurWindow& window, std::span<float> sums,
            Registers registers = Registers::kWidest);

 private:
  void make_room(ImageSize size, const BlurWindow& window);

  std::vector<float> padded_;  // [height + rows - 1][width + columns - 1][3], and some to read behind it
  std::vector<float> across_;  // [rows], the latest rows of padded_, weighted by the window's row
};

}  // namespace sluice::pipeline
