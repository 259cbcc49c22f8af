// The structure of a WebP file (RFC 9649): where its image lies, and how large that is.
//
// A file is taken only if Pillow surely opens it and finds one still image. Animations, damage and rare arrangements
// are refused: Pillow has to see to them. Metadata change no pixel, and Pillow does not read them before it is asked.
#pragma once

#include <cstdint>
#include <span>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"

namespace sluice::pipeline {

struct WebpFile {
  ImageSize size;
  bool is_lossless = false;
  bool has_alpha_plane = false;         // in a chunk of its own, beside a lossy image
  bool may_have_alpha = false;          // as the features or the image's own header say
  std::span<const std::uint8_t> image;  // the chunks that libwebp decodes
};

// By its first bytes, as PIL tells it.
bool is_webp(std::span<const std::uint8_t> file);

// What `file` holds. It points into `file`.
// InvalidArgument: a rare kind, or more than kMaxImagePixels pixels; DataLoss: damaged or truncated.
// REQUIRES: is_webp(file)
Result<WebpFile> read_webp(std::span<const std::uint8_t> file);

}  // namespace sluice::pipeline
