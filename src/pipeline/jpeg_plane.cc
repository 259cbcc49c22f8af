#include "src/pipeline/jpeg_plane.h"

#include <algorithm>
#include <cstring>

#include "src/pipeline/jpeg_kernels.h"

namespace sluice::pipeline {
namespace {

// One sample before a row is read.
constexpr std::size_t kMarginBefore = 8;

int ceil_divide(int a, int b) { return (a + b - 1) / b; }

}  // namespace

void JpegPlane::reset(const Shape& shape, const Box& box) {
  shape_ = shape;
  size_ = {ceil_divide(shape.image.height, shape.pixels_down), ceil_divide(shape.image.width, shape.pixels_across)};
  const auto blocks = [](int first_pixel, int end_pixel, int pixels, int samples) {
    const int beside = pixels > 1 ? 1 : 0;
    const int first = std::max((first_pixel - beside) / pixels, 0);
    const int last = std::min((end_pixel - 1 + beside) / pixels, samples - 1);
    return Range{first / kBlockSide, last / kBlockSide + 1};
  };
  block_rows_ = blocks(box.top, box.top + box.height, shape.pixels_down, size_.height);
  block_columns_ = blocks(box.left, box.left + box.width, shape.pixels_across, size_.width);
  mcu_row_ = 0;
  const int columns = (block_columns_.end - block_columns_.first) * kBlockSide;
  stride_bytes_ = kMarginBefore + static_cast<std::size_t>(columns) + kSampleRowMargin;
  const std::size_t needed_bytes = stride_bytes_ * static_cast<std::size_t>(rows_in_mcu() + 1);
  if (samples_.size() < needed_bytes) samples_.resize(needed_bytes);
}

std::uint8_t* JpegPlane::at(int row, int column) {
  const auto buffered_row = static_cast<std::size_t>(row - mcu_row_ * rows_in_mcu() + 1);
  const std::ptrdiff_t buffered_column = column - block_columns_.first * kBlockSide;
  return samples_.data() + buffered_row * stride_bytes_ + kMarginBefore + buffered_column;
}

void JpegPlane::finish_mcu_row() {
  const int first_row = mcu_row_ * rows_in_mcu();
  const bool at_end = block_columns_.end * kBlockSide >= size_.width;
  for (int row = first_row; row < first_row + rows_in_mcu(); ++row) {
    if (block_columns_.first == 0) *at(row, -1) = *at(row, 0);
    if (at_end) *at(row, size_.width) = *at(row, size_.width - 1);
  }
}

void JpegPlane::begin_mcu_row(int mcu_row) {
  if (mcu_row == mcu_row_ + 1) {
    std::memcpy(samples_.data(), samples_.data() + static_cast<std::size_t>(rows_in_mcu()) * stride_bytes_,
                stride_bytes_);
  }
  mcu_row_ = mcu_row;
}

}  // namespace sluice::pipeline
