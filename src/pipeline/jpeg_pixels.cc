#include "src/pipeline/jpeg_pixels.h"

#include <algorithm>
#include <cstring>

#include "src/pipeline/jpeg_transform.h"

namespace sluice::pipeline {
namespace {

constexpr int kNarrowChroma = 2;

int ceil_divide(int a, int b) { return (a + b - 1) / b; }

void grow(std::vector<std::uint8_t>& bytes, std::size_t size) {
  if (bytes.size() < size) bytes.resize(size);
}

// What the inverse transform makes of a block whose other coefficients are zero, at each of its samples.
std::uint8_t flat_sample(std::int16_t coefficient, std::int16_t step) {
  constexpr int kShift = kSecondPassShift - kFactorBits;
  const auto first_pass = static_cast<std::int16_t>((coefficient * step) << kExtraBits);
  const int second_pass = (first_pass + (1 << (kShift - 1))) >> kShift;
  return static_cast<std::uint8_t>(std::clamp(second_pass, -kColourZero, kColourZero - 1) + kColourZero);
}

}  // namespace

bool JpegFrame::has_narrow_chroma() const {
  return component_count > 1 && pixels_across > 1 && ceil_divide(image.width, pixels_across) <= kNarrowChroma;
}

int JpegFrame::block_columns(std::size_t component) const {
  return ceil_divide(component == 0 ? image.width : ceil_divide(image.width, pixels_across), kBlockSide);
}

int JpegFrame::block_rows(std::size_t component) const {
  return ceil_divide(component == 0 ? image.height : ceil_divide(image.height, pixels_down), kBlockSide);
}

void JpegPixels::start(const JpegFrame& frame, const Box& box) {
  frame_ = &frame;
  box_ = box;
  for (std::size_t i = 0; i < frame.component_count; ++i) {
    const JpegPlane::Shape shape{
        .image = frame.image,
        .columns_per_mcu = frame.columns_per_mcu(i),
        .rows_per_mcu = frame.rows_per_mcu(i),
        .pixels_across = i == 0 ? 1 : frame.pixels_across,
        .pixels_down = i == 0 ? 1 : frame.pixels_down,
    };
    components_[i].plane.reset(shape, box);
    grow(components_[i].widened, static_cast<std::size_t>(box.width) + 2 + kSampleRowMargin);
  }
  stride_bytes_ = (static_cast<std::size_t>(box.width) + kPixelRowMargin) * 3;
  grow(pixels_, stride_bytes_ * static_cast<std::size_t>(box.height));
  next_row_ = box.top;
}

int JpegPixels::first_mcu_row() const {
  int row = components_[0].plane.first_mcu_row();
  for (std::size_t i = 1; i < frame_->component_count; ++i) row = std::min(row, components_[i].plane.first_mcu_row());
  return row;
}

int JpegPixels::last_mcu_row() const {
  int row = 0;
  for (std::size_t i = 0; i < frame_->component_count; ++i) row = std::max(row, components_[i].plane.last_mcu_row());
  return row;
}

int JpegPixels::end_mcu_column() const {
  int column = 0;
  for (std::size_t i = 0; i < frame_->component_count; ++i) {
    column = std::max(column, components_[i].plane.last_mcu_column());
  }
  return column + 1;
}

void JpegPixels::begin_mcu_row(int mcu_row) {
  mcu_row_ = mcu_row;
  for (std::size_t i = 0; i < frame_->component_count; ++i) components_[i].plane.begin_mcu_row(mcu_row);
}

void JpegPixels::put(std::size_t component, int row, int column, const CoefficientBlock& block, bool has_others) {
  JpegPlane& plane = components_[component].plane;
  const auto& steps = frame_->steps[component];
  std::uint8_t* target = plane.at(row * kBlockSide, column * kBlockSide);
  if (has_others) {
    kernels_->inverse_transform(block, steps.data(), target, plane.stride_bytes());
    return;
  }
  const std::uint8_t flat = flat_sample(block.values[0], steps[0]);
  for (int y = 0; y < kBlockSide; ++y, target += plane.stride_bytes()) std::memset(target, flat, kBlockSide);
}

void JpegPixels::finish_mcu_row() {
  for (std::size_t i = 0; i < frame_->component_count; ++i) components_[i].plane.finish_mcu_row();
  // The last row of pixels is smoothed with the next row of chroma.
  const int down = frame_->pixels_down;
  const int smoothed_later = down > 1 && mcu_row_ < last_mcu_row() ? 1 : 0;
  write_rows((mcu_row_ + 1) * kBlockSide * down - smoothed_later);
}

void JpegPixels::write_rows(int end_row) {
  const auto width = static_cast<std::size_t>(box_.width);
  for (const int end = std::min(end_row, box_.top + box_.height); next_row_ < end; ++next_row_) {
    const std::uint8_t* luma = components_[0].plane.at(next_row_, box_.left);
    std::uint8_t* row = pixels_.data() + static_cast<std::size_t>(next_row_ - box_.top) * stride_bytes_;
    if (frame_->component_count == 1) {
      kernels_->grey_to_rgb(luma, row, width);
      continue;
    }
    kernels_->to_rgb(luma, chroma_row(next_row_, 1), chroma_row(next_row_, 2), row, width);
  }
}

const std::uint8_t* JpegPixels::chroma_row(int row, std::size_t component) {
  JpegPlane& plane = components_[component].plane;
  if (frame_->pixels_across == 1) return plane.at(row, box_.left);
  const int first = box_.left / 2;
  const auto count = static_cast<std::size_t>((box_.left + box_.width - 1) / 2 - first + 1);
  std::uint8_t* widened = components_[component].widened.data();
  if (frame_->pixels_down == 1) {
    kernels_->widen(plane.at(row, first), widened, count);
  } else {
    // The nearer row of samples counts three times.
    const int near = row / 2;
    const int far = std::clamp(row % 2 == 0 ? near - 1 : near + 1, 0, plane.height() - 1);
    kernels_->widen_between(plane.at(near, first), plane.at(far, first), widened, count);
  }
  return widened + box_.left % 2;
}

}  // namespace sluice::pipeline
