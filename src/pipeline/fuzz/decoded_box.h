// What a fuzz target decodes of an image.
#pragma once

#include <cstdint>
#include <optional>

#include "src/base/result.h"
#include "src/base/testing/fuzz_check.h"
#include "src/pipeline/geometry.h"

namespace sluice::pipeline::fuzz {

inline Box whole_of(const ImageSize& size) { return {0, 0, size.height, size.width}; }

inline Box middle_of(const ImageSize& size) {
  return {size.height / 3, size.width / 3, (size.height + 2) / 3, (size.width + 2) / 3};
}

// The size that a decoder has found, which is checked. Nothing if the file is refused, or if it has more than
// `max_pixels`: larger images take too long to decode for a fuzzer.
inline std::optional<ImageSize> size_to_decode(const Result<ImageSize>& size, std::int64_t max_pixels) {
  if (!size.ok()) {
    FUZZ_CHECK(!size.error().message().empty());
    return std::nullopt;
  }
  FUZZ_CHECK(size->height > 0 && size->width > 0);
  const std::int64_t pixels = std::int64_t{size->height} * size->width;
  FUZZ_CHECK(pixels <= kMaxImagePixels);
  if (pixels > max_pixels) return std::nullopt;
  return *size;
}

}  // namespace sluice::pipeline::fuzz
