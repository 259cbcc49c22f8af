// Decodes a rectangle of a JPEG file to RGB, with the same bytes as decoding all of it and cropping.
//
// Uses libjpeg-turbo with the accurate integer DCT and fancy (triangular) chroma upsampling, as Pillow does; faster
// settings differ by up to 29 of 255. Rows above the rectangle are entropy-decoded only, rows below are not touched.
// Columns are decoded in whole iMCUs (the codec's blocks) with a margin, because upsampling the chroma of a column
// looks at its neighbours. Colour is converted as PIL's Image.convert("RGB") does: grey is replicated; CMYK and YCCK
// are taken as Adobe writes them (inverted) and multiplied with the black. EXIF orientation is ignored, as PIL ignores
// it.
//
// Thread safety: none; one per thread.
// Invariant: after any error the decoder can be used for the next file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/rgb_view.h"

namespace sluice::pipeline {

class JpegDecoder {
 public:
  // What PIL calls a decompression bomb, and refuses.
  static constexpr std::int64_t kMaxPixels = 178'956'970;

  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. `file` must stay valid until decode() has returned.
  // InvalidArgument: not a JPEG, or a kind that Pillow refuses too; DataLoss: truncated or damaged. Messages do not
  // name the file.
  Result<ImageSize> open(std::span<const std::uint8_t> file);

  // Decodes `box` of the opened image. The view is valid until the next call of open() or decode().
  // DataLoss when the file is truncated anywhere, also below the box: PIL refuses such files, so must we.
  // Damaged entropy-coded data is decoded to whatever libjpeg makes of it, as in PIL.
  // REQUIRES: the last open() succeeded and no decode() since; box is not empty and inside the image
  Result<RgbView> decode(const Box& box);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::pipeline
