// Decodes a rectangle of a JPEG file to RGB, with the same bytes as decoding all of it and cropping.
//
// The bytes are libjpeg-turbo's with the accurate integer DCT and fancy (triangular) chroma upsampling, as Pillow takes
// them; faster settings differ by up to 29 of 255. BaselineJpegDecoder decodes the common kind of file, libjpeg-turbo
// every other and all that is damaged; it reads the headers, too. Rows above the rectangle are entropy-decoded only,
// rows below are not touched. Columns are decoded in whole blocks with a margin, because upsampling the chroma of a
// column looks at its neighbours. Colour is converted as PIL's Image.convert("RGB") does: grey is replicated; CMYK and
// YCCK are taken as Adobe writes them (inverted) and multiplied with the black. EXIF orientation is ignored, as PIL
// ignores it.
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
#include "src/pipeline/jpeg_kernels.h"
#include "src/pipeline/rgb_view.h"

namespace sluice::pipeline {

// By its first bytes, as PIL tells it.
bool is_jpeg(std::span<const std::uint8_t> file);

class JpegDecoder {
 public:
  // `kernels` are those of BaselineJpegDecoder; nullptr: libjpeg-turbo decodes every file.
  explicit JpegDecoder(const JpegKernels* kernels = fast_jpeg_kernels());
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. `file` must stay valid until decode() has returned.
  // InvalidArgument: not a JPEG, or a kind that Pillow refuses too; DataLoss: truncated or damaged. Messages do not
  // name the file.
  Result<ImageSize> open(std::span<const std::uint8_t> file);

  // The same for what transcode() has written.
  // DataLoss: these are no such bytes, or this machine has no kernels for them.
  Result<ImageSize> open_coefficients(std::span<const std::uint8_t> coded);

  // Writes the coefficients of the opened file, from which open_coefficients() and decode() make the same pixels for
  // less (jpeg_coefficients.h). False: the file is damaged or of a rare kind, the result would have more than
  // `bytes_max` bytes, or this machine has no kernels for it; `coded` is unspecified.
  // REQUIRES: the last open() succeeded and neither decode() nor transcode() since
  bool transcode(std::size_t bytes_max, std::vector<std::uint8_t>& coded);

  // Decodes `box` of the opened image. The view is valid until the next call of open() or decode().
  // DataLoss when the file is truncated anywhere, also below the box: PIL refuses such files, so must we.
  // Damaged entropy-coded data is decoded to whatever libjpeg makes of it, as in PIL.
  // REQUIRES: the last open() succeeded, and neither decode() nor transcode() since; box is not empty and inside the
  // image
  Result<RgbView> decode(const Box& box);

  // Whether the opened image has three components; else it is grey or CMYK.
  bool is_rgb() const;

  // Whether libjpeg warned of the file since open(): it is damaged, or odd, in what the box needed of it. Other
  // versions of libjpeg may make other pixels of it. Without BaselineJpegDecoder libjpeg may have read, and warned of,
  // more.
  bool warned() const;

  // Whether BaselineJpegDecoder made the last box's pixels, not libjpeg.
  bool decoded_baseline() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::pipeline
