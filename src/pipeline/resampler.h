// Resizes a rectangle of RGB pixels exactly as Pillow's Image.resize, optionally cut to a window and mirrored.
//
// Two passes, columns first, with 8-bit pixels between them: the intermediate rounding is part of Pillow's result.
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
  Box prepare(const GeometryPlan& plan);

  // `pixels` shows the box that the last prepare() returned, readable for kReadableBytesBehindPixels behind its last
  // row. `output` gets window.height * window.width RGB pixels without gaps.
  void resample(const RgbView& pixels, std::span<std::uint8_t> output);

 private:
  const ResampleKernels* kernels_;
  AxisTaps columns_;
  AxisTaps rows_;
  std::vector<std::uint8_t> narrowed_;  // after the first pass
};

}  // namespace sluice::pipeline
