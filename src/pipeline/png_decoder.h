// Decodes a rectangle of a PNG file to RGB, with the bytes of PIL's Image.open(file).convert("RGB").
//
// The rows are decompressed at once: what lies below the rectangle, too, because only the end of the stream says
// whether all of it is sound, and Pillow refuses a damaged one. The filters are undone down to the rectangle's last
// row, and its pixels alone become RGB. Gamma, colour profiles and orientation are ignored, as PIL ignores them. What
// Pillow may see otherwise is refused (png_file.h).
//
// Thread safety: none; one per thread. Memory: a file cannot ask for more than its bytes can make, and for
// kMaxRowsBytes. Invariant: after any error the decoder can be used for the next file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/inflate.h"
#include "src/pipeline/png_file.h"
#include "src/pipeline/png_pixels.h"
#include "src/pipeline/rgb_view.h"

namespace sluice::pipeline {

class PngDecoder {
 public:
  // Of the decompressed rows.
  static constexpr std::size_t kMaxRowsBytes = std::size_t{1} << 30;

  // Reads all but the pixels. `file` must stay valid until decode() has returned.
  // InvalidArgument: a kind that this decoder leaves to Pillow; DataLoss: truncated or damaged. Messages do not name
  // the file. REQUIRES: is_png(file)
  Result<ImageSize> open(std::span<const std::uint8_t> file);

  // Whether the opened image has colours without a palette and without alpha.
  bool is_rgb() const { return file_.colour == PngColour::kRgb; }
  bool has_16_bits() const { return file_.depth_bits == 16; }

  // Decodes `box` of the opened image. The view is valid until the next call of open() or decode().
  // DataLoss when the pixels are damaged or truncated anywhere.
  // REQUIRES: the last open() succeeded; box is not empty and inside the image
  Result<RgbView> decode(const Box& box);

 private:
  // The rows of the file, or of a pass of an interlaced one: those that begin at an offset of rows_.
  struct Pass {
    std::size_t offset = 0;
    ImageSize size;
  };
  // Row `y` without its filter, if those before it are so. Nothing if there is no such filter.
  const std::uint8_t* plain_row(const Pass& pass, int y);
  bool has_known_filters(const Pass& pass) const;
  bool decode_rows(const Box& box, PngPixels& pixels, RgbView& view);
  bool decode_passes(PngPixels& pixels);

  Inflater inflater_;
  PngFile file_;
  std::vector<std::uint8_t> gathered_;  // the stream, where it lies in several chunks
  std::vector<std::uint8_t> rows_;      // the filter's number and the bytes of each row
  std::vector<std::uint8_t> zeros_;     // what is above the first row
  std::vector<std::uint8_t> pixels_;
};

}  // namespace sluice::pipeline
