// Decodes a rectangle of an image file to RGB: JPEG, PNG or WebP, as the file's first bytes say, whatever its name
// is.
//
// Thread safety: none; one per thread.
// Invariant: after any error the decoder can be used for the next file.
#pragma once

#include <cstdint>
#include <span>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/jpeg_decoder.h"
#include "src/pipeline/png_decoder.h"
#include "src/pipeline/rgb_view.h"
#include "src/pipeline/webp_decoder.h"

namespace sluice::pipeline {

class ImageDecoder {
 public:
  // Reads the header. `file` must stay valid until decode() has returned.
  // InvalidArgument: another format, or a kind that only Pillow decodes; DataLoss: truncated or damaged. Messages do
  // not name the file.
  Result<ImageSize> open(std::span<const std::uint8_t> file);

  // The same for the coefficients of a JPEG (JpegDecoder::transcode).
  Result<ImageSize> open_coefficients(std::span<const std::uint8_t> coded);

  // Decodes `box` of the opened image. The view is valid until the next call of any of these.
  // DataLoss: truncated or damaged.
  // REQUIRES: the last open succeeded and no decode() since; box is not empty and inside the image
  Result<RgbView> decode(const Box& box);

  // Whether Pillow opens the file in the mode RGB: neither grey, nor CMYK, nor with a palette or alpha. Of a WebP that
  // may have alpha this is false. REQUIRES: the last open succeeded
  bool is_rgb() const;

  // Whether a channel of the file has 16 bits, of which Pillow keeps 8. REQUIRES: the last open succeeded
  bool has_16_bits() const { return format_ == Format::kPng && png_.has_16_bits(); }

  // Whether the file is damaged in what the box needed of it, and other libraries may make other pixels of it.
  bool warned() const { return format_ == Format::kJpeg && jpeg_.warned(); }

 private:
  enum class Format : std::uint8_t { kJpeg, kPng, kWebp };

  JpegDecoder jpeg_;
  PngDecoder png_;
  WebpDecoder webp_;
  Format format_ = Format::kJpeg;  // of the opened file
};

}  // namespace sluice::pipeline
