// Resizes a rectangle of RGB pixels exactly as Pillow's Image.resize, optionally cut to a window and mirrored.
//
// Two passes, one per axis, with 8-bit pixels between them: the rounding there is part of Pillow's result.
// Usage: prepare() says which input pixels are needed (so that only those are decoded), then resample() makes them into
// the output.
//
// Thread safety: none; one per thread. Memory is reused from image to image.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/pipeline/geometry.h"
#include "src/pipeline/resample_kernels.h"
#include "src/pipeline/resample_taps.h"
#include "src/pipeline/rgb_view.h"

namespace sluice::pipeline {

class Resampler {
 public:
  explicit Resampler(const ResampleKernels& kernels = best_kernels()) : kernels_(&kernels) {}

  // The part of the file's image that `plan` needs; inside plan.source, not empty.
  Box prepare(const GeometryPlan& plan, PassOrder order);

  // `pixels` shows the box that the last prepare() returned, readable for kReadableBytesBehindPixels behind its last
  // row. `output` gets window.height * window.width RGB pixels without gaps.
  void resample(const RgbView& pixels, std::span<std::uint8_t> output);

 private:
  // Rows of pixels with a distance between them.
  struct Rows {
    std::uint8_t* first;
    std::size_t stride_bytes;
  };

  void change_width(const RgbView& pixels, const Rows& target) const;
  void change_height(const RgbView& pixels, const Rows& target) const;

  const ResampleKernels* kernels_;
  AxisTaps columns_;
  AxisTaps rows_;
  bool height_first_ = false;
  std::vector<std::uint8_t> between_;  // the result of the first pass
};

}  // namespace sluice::pipeline
