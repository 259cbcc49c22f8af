// A rectangle of interleaved 8-bit RGB pixels in memory that it does not own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/pipeline/geometry.h"

namespace sluice::pipeline {

struct RgbView {
  const std::uint8_t* pixels = nullptr;  // the top left pixel
  std::size_t stride_bytes = 0;          // from one row to the next
  ImageSize size;

  const std::uint8_t* row(int y) const { return pixels + static_cast<std::size_t>(y) * stride_bytes; }
};

// Rows read in whole vectors may read (never use) up to this many bytes past their last pixel. The owner of pixels that
// a Resampler reads keeps that many bytes readable behind the last row.
inline constexpr std::size_t kReadableBytesBehindPixels = 32;

}  // namespace sluice::pipeline
