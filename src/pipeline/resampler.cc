#include "src/pipeline/resampler.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace sluice::pipeline {

Box Resampler::prepare(const GeometryPlan& plan) {
  columns_.compute(plan.interpolation, plan.source.width, plan.resized.width, plan.window.left, plan.window.width,
                   plan.flip);
  rows_.compute(plan.interpolation, plan.source.height, plan.resized.height, plan.window.top, plan.window.height,
                /*mirrored=*/false);
  return {plan.source.top + rows_.first_input, plan.source.left + columns_.first_input, rows_.input_count,
          columns_.input_count};
}

void Resampler::resample(const RgbView& pixels, std::span<std::uint8_t> output) {
  const std::size_t row_bytes = columns_.outputs.size() * 3;
  assert(pixels.size.height == rows_.input_count && pixels.size.width == columns_.input_count);
  assert(output.size() == row_bytes * rows_.outputs.size());

  const std::size_t stride_bytes = row_bytes + kWritableBytesBehindRow;
  const std::size_t narrowed_bytes = stride_bytes * static_cast<std::size_t>(rows_.input_count);
  if (narrowed_.size() < narrowed_bytes) narrowed_.resize(narrowed_bytes);

  std::array<const std::uint8_t*, kRowsPerCall> sources;
  std::array<std::uint8_t*, kRowsPerCall> targets;
  for (int first = 0; first < rows_.input_count; first += kRowsPerCall) {
    const int count = std::min(kRowsPerCall, rows_.input_count - first);
    for (int i = 0; i < count; ++i) {
      sources[static_cast<std::size_t>(i)] = pixels.row(first + i);
      targets[static_cast<std::size_t>(i)] = narrowed_.data() + static_cast<std::size_t>(first + i) * stride_bytes;
    }
    kernels_->horizontal(columns_, sources.data(), targets.data(), count);
  }

  std::uint8_t* target = output.data();
  for (const AxisTaps::Output& row : rows_.outputs) {
    const std::uint8_t* source = narrowed_.data() + static_cast<std::size_t>(row.first_input) * stride_bytes;
    kernels_->vertical(rows_, row, source, stride_bytes, target, row_bytes);
    target += row_bytes;
  }
}

}  // namespace sluice::pipeline
