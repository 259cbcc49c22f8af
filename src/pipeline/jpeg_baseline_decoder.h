// Decodes a rectangle of the common kind of JPEG, faster than libjpeg-turbo and to the same bytes: baseline, 8 bits,
// one scan, YCbCr in 4:2:0, 4:2:2 or 4:4:4, or grey.
//
// It answers for undamaged data only. Where libjpeg would warn or fail, it gives up, and libjpeg's answer counts.
// Blocks beside and above the rectangle are read over without making their coefficients. docs/designs/jpeg.md says what
// was measured.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/pipeline/geometry.h"
#include "src/pipeline/jpeg_coefficients.h"
#include "src/pipeline/jpeg_entropy_data.h"
#include "src/pipeline/jpeg_huffman_table.h"
#include "src/pipeline/jpeg_kernels.h"
#include "src/pipeline/jpeg_pixels.h"
#include "src/pipeline/rgb_view.h"

namespace sluice::pipeline {

// What the headers say of an image that BaselineJpegDecoder takes.
struct JpegScan {
  struct Component {
    HuffmanDefinition first;  // of a block's first coefficient
    HuffmanDefinition others;
  };

  JpegFrame frame;
  std::array<Component, 3> components;
  std::uint32_t restart_interval = 0;  // MCUs between two restart markers; 0: without
  std::span<const std::uint8_t> data;  // behind the scan's header, to the end of the file
};

class BaselineJpegDecoder {
 public:
  explicit BaselineJpegDecoder(const JpegKernels& kernels) : kernels_(&kernels), pixels_(kernels) {}

  // The pixels of `box`, valid until the next call. Nothing if libjpeg must decode the file.
  // REQUIRES: box is not empty and inside the image
  std::optional<RgbView> decode(const JpegScan& scan, const Box& box);

  // Gives all blocks to `writer`. False if libjpeg must decode the file, or the writer does not take them.
  bool read_all(const JpegScan& scan, JpegCoefficientWriter& writer);

 private:
  // A block of an MCU.
  struct Unit {
    std::size_t component = 0;
    int row = 0, column = 0;  // among the component's blocks in the MCU
    int rows_per_mcu = 1, columns_per_mcu = 1;
    // Those that the box needs.
    JpegPlane::Range needed_rows, needed_columns;
  };

  struct Component {
    HuffmanTable first;
    HuffmanPairTable others;
    BlockCoding coding;  // with these tables or an earlier component's
  };

  bool prepare(const JpegScan& scan);
  bool prepare_coding(const JpegScan& scan, std::size_t index);
  void prepare_units(const JpegFrame& frame);
  bool begin_segment();
  bool restart(const JpegScan& scan);
  // Calls `read(unit, mcu_row, mcu_column)` for the units of a row of MCUs.
  template <typename Read>
  bool read_mcu_row(const JpegScan& scan, int mcu_row, int mcu_columns, const Read& read);
  bool read_unit(const Unit& unit, int mcu_row, int mcu_column);
  bool is_sound() const;

  const JpegKernels* kernels_;
  EntropyData data_;
  BitReader reader_;
  std::uint32_t mcus_to_restart_ = 0;
  std::uint8_t next_restart_marker_ = 0;
  std::array<Component, 3> components_;
  std::vector<Unit> units_;
  CoefficientBlock block_;
  JpegPixels pixels_;
};

}  // namespace sluice::pipeline
