// The pixels of a rectangle of a JPEG, from the coefficients of its blocks: grey, or YCbCr in 4:2:0, 4:2:2 or 4:4:4.
//
// Blocks come in rows of MCUs (the codec's blocks of pixels), from the top. Each row is transformed, smoothed and
// converted before the next, so that it stays in the nearest caches. The bytes are libjpeg-turbo's (jpeg_kernels.h).
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/pipeline/geometry.h"
#include "src/pipeline/jpeg_kernels.h"
#include "src/pipeline/jpeg_plane.h"
#include "src/pipeline/rgb_view.h"

namespace sluice::pipeline {

// What the headers say of an image, but for its codes.
struct JpegFrame {
  ImageSize image;
  std::size_t component_count = 0;  // 1: grey, 3: YCbCr
  int pixels_across = 1;            // columns and rows of pixels to a sample of chroma: 2, 2; 2, 1; or 1, 1
  int pixels_down = 1;
  std::array<std::array<std::int16_t, kBlockEnd>, 3> steps{};  // of quantisation, row by row, modulo 2^16

  // libjpeg does not smooth chroma of at most two columns, so such an image is its own.
  bool has_narrow_chroma() const;

  // Blocks of a component in an MCU.
  int columns_per_mcu(std::size_t component) const { return component == 0 ? pixels_across : 1; }
  int rows_per_mcu(std::size_t component) const { return component == 0 ? pixels_down : 1; }
  // Blocks of a component that show something of the image.
  int block_columns(std::size_t component) const;
  int block_rows(std::size_t component) const;
  int mcu_columns() const { return (image.width - 1) / (kBlockSide * pixels_across) + 1; }
  int mcu_rows() const { return (image.height - 1) / (kBlockSide * pixels_down) + 1; }
};

class JpegPixels {
 public:
  explicit JpegPixels(const JpegKernels& kernels) : kernels_(&kernels) {}

  // REQUIRES: `frame` stays valid while its pixels are made and has no narrow chroma; `box` is not empty and inside the
  // image
  void start(const JpegFrame& frame, const Box& box);

  // What the box needs: MCU rows, columns of MCUs up to an end, and blocks.
  int first_mcu_row() const;
  int last_mcu_row() const;
  int end_mcu_column() const;
  JpegPlane::Range block_rows(std::size_t component) const { return components_[component].plane.block_rows(); }
  JpegPlane::Range block_columns(std::size_t component) const { return components_[component].plane.block_columns(); }

  // MCU rows follow each other without a gap from one that is not behind first_mcu_row(), to last_mcu_row().
  void begin_mcu_row(int mcu_row);
  // REQUIRES: the block is needed and in the current MCU row. `has_others`: of its coefficients, any but the first may
  // not be zero.
  void put(std::size_t component, int row, int column, const CoefficientBlock& block, bool has_others);
  // REQUIRES: all needed blocks of the MCU row have been put
  void finish_mcu_row();

  // Valid until the next start(). REQUIRES: the last MCU row is finished
  RgbView view() const { return {pixels_.data(), stride_bytes_, {box_.height, box_.width}}; }

 private:
  struct Component {
    JpegPlane plane;
    std::vector<std::uint8_t> widened;  // a row of chroma
  };

  void write_rows(int end_row);
  const std::uint8_t* chroma_row(int row, std::size_t component);

  const JpegKernels* kernels_;
  const JpegFrame* frame_ = nullptr;
  Box box_;
  int mcu_row_ = 0;
  int next_row_ = 0;  // of pixels
  std::array<Component, 3> components_;
  std::vector<std::uint8_t> pixels_;
  std::size_t stride_bytes_ = 0;
};

}  // namespace sluice::pipeline
