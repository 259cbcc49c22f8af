// The samples of one colour component of a JPEG that a box of the image needs: those of the current row of MCUs (the
// codec's blocks of pixels), and the last row of samples before it.
//
// Thread safety: as int.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/pipeline/geometry.h"

namespace sluice::pipeline {

// Samples along a side of a block.
inline constexpr int kBlockSide = 8;

class JpegPlane {
 public:
  struct Shape {
    ImageSize image;
    int columns_per_mcu = 1;  // blocks of the component in an MCU
    int rows_per_mcu = 1;
    int pixels_across = 1;  // columns and rows of pixels to a sample; more than 1: the samples beside are needed, too
    int pixels_down = 1;
  };

  struct Range {
    int first = 0;
    int end = 0;
    bool has(int value) const { return value >= first && value < end; }
  };

  // Makes room for what `box` needs. The samples are not defined.
  void reset(const Shape& shape, const Box& box);

  int height() const { return size_.height; }
  // The blocks that are needed.
  Range block_rows() const { return block_rows_; }
  Range block_columns() const { return block_columns_; }
  int first_mcu_row() const { return block_rows_.first / shape_.rows_per_mcu; }
  int last_mcu_row() const { return (block_rows_.end - 1) / shape_.rows_per_mcu; }
  int last_mcu_column() const { return (block_columns_.end - 1) / shape_.columns_per_mcu; }

  // The sample of the component at `row` and `column`. REQUIRES: needed, or beside it; the row is of the current MCU
  // row or the last before it
  std::uint8_t* at(int row, int column);
  std::size_t stride_bytes() const { return stride_bytes_; }

  // To be called when the blocks of an MCU row are there: repeats the component's first and last columns beside it, as
  // smoothing needs them.
  void finish_mcu_row();
  // Goes to an MCU row. If it is the one behind the current then that one's last row of samples stays.
  void begin_mcu_row(int mcu_row);

 private:
  int rows_in_mcu() const { return shape_.rows_per_mcu * kBlockSide; }

  Shape shape_;
  ImageSize size_;  // of the component
  Range block_rows_, block_columns_;
  int mcu_row_ = 0;
  std::size_t stride_bytes_ = 0;
  std::vector<std::uint8_t> samples_;
};

}  // namespace sluice::pipeline
