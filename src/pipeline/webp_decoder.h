// Decodes a rectangle of a WebP file to RGB, with the bytes of PIL's Image.open(file).convert("RGB").
//
// libwebp decodes the whole image, as Pillow has it do, because Pillow refuses an image that is damaged anywhere. Alpha
// is decoded and dropped. libwebp's vector code gives the bytes of its portable code. What Pillow may see otherwise is
// refused (webp_file.h).
//
// Thread safety: none; one per thread. Memory: kMaxWorkingBytes, known from the header, and the tables of codes of a
// lossless image, which are at most 6,000 times as large as the file and below 0.9 GB.
// Invariant: after any error the decoder can be used for the next file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/rgb_view.h"
#include "src/pipeline/webp_file.h"

namespace sluice::pipeline {

class WebpDecoder {
 public:
  // Of the pixels, decoded and on their way there.
  static constexpr std::size_t kMaxWorkingBytes = std::size_t{1} << 30;

  // Reads all but the pixels. `file` must stay valid until decode() has returned.
  // InvalidArgument: a kind that this decoder leaves to Pillow; DataLoss: truncated or damaged. Messages do not name
  // the file. REQUIRES: is_webp(file)
  Result<ImageSize> open(std::span<const std::uint8_t> file);

  // Whether nothing in the opened file announces alpha.
  bool is_rgb() const { return !file_.may_have_alpha; }

  // Decodes `box` of the opened image. The view is valid until the next call of open() or decode().
  // DataLoss when the pixels are damaged or truncated anywhere.
  // REQUIRES: the last open() succeeded; box is not empty and inside the image
  Result<RgbView> decode(const Box& box);

 private:
  WebpFile file_;
  std::vector<std::uint8_t> pixels_;  // of the whole image
};

}  // namespace sluice::pipeline
