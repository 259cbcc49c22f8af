#include "src/pipeline/resampler.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace sluice::pipeline {

Box Resampler::prepare(const GeometryPlan& plan, PassOrder order) {
  columns_.compute(plan.interpolation, plan.source.width, plan.resized.width, plan.window.left, plan.window.width,
                   plan.flip);
  rows_.compute(plan.interpolation, plan.source.height, plan.resized.height, plan.window.top, plan.window.height,
                plan.flip_vertical);
  height_first_ = plan.height_first(order);
  return {plan.source.top + rows_.first_input, plan.source.left + columns_.first_input, rows_.input_count,
          columns_.input_count};
}

void Resampler::resample(const RgbView& pixels, std::span<std::uint8_t> output) {
  const ImageSize target{static_cast<int>(rows_.outputs.size()), static_cast<int>(columns_.outputs.size())};
  const std::size_t target_row_bytes = columns_.outputs.size() * 3;
  assert((pixels.size == ImageSize{rows_.input_count, columns_.input_count}));
  assert(output.size() == target_row_bytes * rows_.outputs.size());

  const ImageSize size =
      height_first_ ? ImageSize{target.height, pixels.size.width} : ImageSize{pixels.size.height, target.width};
  const std::size_t stride_bytes = static_cast<std::size_t>(size.width) * 3;
  const std::size_t bytes = stride_bytes * static_cast<std::size_t>(size.height) + kReadableBytesBehindPixels;
  if (between_.size() < bytes) between_.resize(bytes);
  const Rows between{between_.data(), stride_bytes};
  const RgbView between_view{between_.data(), stride_bytes, size};
  const Rows last{output.data(), target_row_bytes};
  if (height_first_) {
    change_height(pixels, between);
    change_width(between_view, last);
  } else {
    change_width(pixels, between);
    change_height(between_view, last);
  }
}

void Resampler::change_width(const RgbView& pixels, const Rows& target) const {
  std::array<const std::uint8_t*, kRowsPerCall> sources{};
  std::array<std::uint8_t*, kRowsPerCall> targets{};
  for (int first = 0; first < pixels.size.height; first += kRowsPerCall) {
    const int count = std::min(kRowsPerCall, pixels.size.height - first);
    for (int i = 0; i < count; ++i) {
      sources[static_cast<std::size_t>(i)] = pixels.row(first + i);
      targets[static_cast<std::size_t>(i)] = target.first + static_cast<std::size_t>(first + i) * target.stride_bytes;
    }
    kernels_->horizontal(columns_, sources.data(), targets.data(), count);
  }
}

void Resampler::change_height(const RgbView& pixels, const Rows& target) const {
  const std::size_t row_bytes = static_cast<std::size_t>(pixels.size.width) * 3;
  std::uint8_t* target_row = target.first;
  for (const AxisTaps::Output& row : rows_.outputs) {
    kernels_->vertical(rows_, row, pixels.row(row.first_input), pixels.stride_bytes, target_row, row_bytes);
    target_row += target.stride_bytes;
  }
}

}  // namespace sluice::pipeline
