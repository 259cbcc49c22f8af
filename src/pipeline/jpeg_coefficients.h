// A JPEG's quantised coefficients, coded to be read fast: what a cache can keep in place of the file
// (docs/designs/cache.md). They are the file's own, so the pixels are, too.
//
//   u32 magic, u16 height, u16 width, u8 components, u8 pixels_across, u8 pixels_down, u8 zero
//   for each component: 64 u16 steps of quantisation, row by row
//   for each component, each row of its blocks: u32 place of the row, from the beginning of all
//   the rows: for each block one byte, its length; then the blocks (jpeg_block_packing.h)
//   kPackedMarginBytes zeros
// Numbers are little-endian. Only blocks that show something of the image are there. As each row has a place and each
// block a length, a decoder goes at once to those that it needs.
//
// The keeper of the bytes checks that they are as written. The decoder reads no byte outside of whatever it is given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/pipeline/geometry.h"
#include "src/pipeline/jpeg_kernels.h"
#include "src/pipeline/jpeg_pixels.h"
#include "src/pipeline/rgb_view.h"

namespace sluice::pipeline {

// Changes with the meaning of any byte. A reader of another version must not be given the bytes.
inline constexpr int kJpegCoefficientsVersion = 1;

// Coefficients that have more than so many times the file's bytes are not worth keeping.
inline constexpr std::size_t kCoefficientsPerByte = 3;

// Thread safety: none.
class JpegCoefficientWriter {
 public:
  // Replaces `coded`, which stays within `bytes_max` (and kPackedMarginBytes to work in).
  // REQUIRES: the frame has no narrow chroma; all arguments outlive the writer
  JpegCoefficientWriter(const JpegKernels& kernels, const JpegFrame& frame, std::size_t bytes_max,
                        std::vector<std::uint8_t>& coded);

  // The blocks of a row come from the left to the right, rows of MCUs from the top. Blocks beyond the image are
  // dropped. False: a coefficient is larger than those of any sound image.
  bool add(std::size_t component, int row, int column, const CoefficientBlock& block);
  // To be called behind each row of MCUs. False: too many bytes.
  bool finish_rows();
  // To be called at the end. False: too many bytes, and `coded` is unspecified.
  bool finish();

 private:
  struct Row {
    int number = 0;  // among the component's
    std::size_t blocks = 0;
    std::size_t bytes = 0;
    std::vector<std::uint8_t> lengths, packed;
  };
  struct Component {
    int columns = 0, rows = 0;  // of blocks
    std::size_t places_at = 0;  // in the coded bytes
    std::array<Row, 2> of_mcu;
  };

  bool append(std::span<const std::uint8_t> bytes);

  const JpegKernels* kernels_;
  const JpegFrame* frame_;
  const std::size_t bytes_max_;
  std::vector<std::uint8_t>& coded_;
  std::array<Component, 3> components_;
};

// Thread safety: none.
class JpegCoefficientDecoder {
 public:
  explicit JpegCoefficientDecoder(const JpegKernels& kernels) : kernels_(&kernels), pixels_(kernels) {}

  // Nothing if these are no such bytes. REQUIRES: `coded` stays valid until decode() has returned
  std::optional<ImageSize> open(std::span<const std::uint8_t> coded);

  // Else the opened image is grey.
  bool has_colours() const { return frame_.component_count == 3; }

  // The pixels of `box`, valid until the next call. Nothing if the bytes are damaged where the box needs them.
  // REQUIRES: the last open() succeeded; box is not empty and inside the image
  std::optional<RgbView> decode(const Box& box);

 private:
  bool read_row(std::size_t component, int row);

  const JpegKernels* kernels_;
  std::span<const std::uint8_t> coded_;
  JpegFrame frame_;
  std::array<std::size_t, 3> places_at_{};
  CoefficientBlock block_;
  JpegPixels pixels_;
};

}  // namespace sluice::pipeline
