#include "src/pipeline/planned_image.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>

namespace sluice::pipeline {
namespace {

Result<void> check_pixels(ImageSize size) {
  const std::int64_t pixels = std::int64_t{size.height} * size.width;
  if (pixels <= kMaxImagePixels) return {};
  return invalid_argument("an operation makes " + std::to_string(pixels) + " pixels of it, more than " +
                          std::to_string(kMaxImagePixels));
}

// The pixel of an axis of `size` pixels that place `at`, outside of it or not, shows.
int source_of(int at, int size, PaddingMode mode) {
  if (at >= 0 && at < size) return at;
  if (mode == PaddingMode::kEdge || size == 1) return std::clamp(at, 0, size - 1);
  const int period = mode == PaddingMode::kReflect ? 2 * (size - 1) : 2 * size;
  const int place = (at % period + period) % period;
  if (place < size) return place;
  return mode == PaddingMode::kReflect ? period - place : period - 1 - place;
}

void fill_row(std::span<std::uint8_t> row, const std::array<std::uint8_t, 3>& fill) {
  for (std::size_t i = 0; i < row.size(); i += 3) std::memcpy(&row[i], fill.data(), 3);
}

}  // namespace

Result<void> PlannedImage::resize(ImageSize size, Interpolation interpolation) {
  if (!plan_.can_resize()) SLUICE_TRY_VOID(compute());
  plan_.resize(size, interpolation);
  return {};
}

Result<void> PlannedImage::pad(const Padding& padding) {
  was_touched_ = true;
  SLUICE_TRY_VOID(compute());
  const ImageSize from = size();
  const ImageSize to{from.height + padding.top + padding.bottom, from.width + padding.left + padding.right};
  SLUICE_TRY_VOID(check_pixels(to));
  const std::span<std::uint8_t> padded = spare_for(to);
  const std::size_t row_bytes = bytes_of({1, to.width});
  for (int y = 0; y < to.height; ++y) {
    const std::span row = padded.subspan(static_cast<std::size_t>(y) * row_bytes, row_bytes);
    const int from_y = y - padding.top;
    if (padding.mode == PaddingMode::kConstant) {
      fill_row(row, padding.fill);
      if (from_y < 0 || from_y >= from.height) continue;
    }
    const std::uint8_t* source =
        buffers_->pixels.data() +
        static_cast<std::size_t>(source_of(from_y, from.height, padding.mode)) * bytes_of({1, from.width});
    std::memcpy(&row[static_cast<std::size_t>(padding.left) * 3], source, bytes_of({1, from.width}));
    if (padding.mode == PaddingMode::kConstant) continue;
    for (int x = 0; x < to.width; ++x) {
      if (x == padding.left) x += from.width;
      if (x >= to.width) break;
      const int from_x = source_of(x - padding.left, from.width, padding.mode);
      std::memcpy(&row[static_cast<std::size_t>(x) * 3], source + static_cast<std::size_t>(from_x) * 3, 3);
    }
  }
  buffers_->pixels.swap(buffers_->spare);
  plan_ = PlanBuilder(to);
  return {};
}

Result<std::span<std::uint8_t>> PlannedImage::pixels() {
  was_touched_ = true;
  SLUICE_TRY_VOID(compute());
  return std::span(buffers_->pixels).first(bytes_of(size()));
}

Result<void> PlannedImage::replace(const Make& make) {
  SLUICE_TRY(const std::span<const std::uint8_t> from, pixels());
  make(from, spare_for(size()));
  buffers_->pixels.swap(buffers_->spare);
  return {};
}

Result<void> PlannedImage::write_to(std::span<std::uint8_t> output) {
  assert(output.size() == bytes_of(size()));
  if (!is_computed_ || !plan_.is_identity()) return run_plan(output);
  std::memcpy(output.data(), buffers_->pixels.data(), output.size());
  buffers_->stopwatch.lap(buffers_->costs.resample, output.size());
  return {};
}

std::span<std::uint8_t> PlannedImage::spare_for(ImageSize size) {
  auto& spare = buffers_->spare;
  spare.resize(std::max(spare.size(), bytes_of(size) + kReadableBytesBehindPixels));
  return std::span(spare).first(bytes_of(size));
}

Result<void> PlannedImage::compute() {
  if (is_computed_ && plan_.is_identity()) return {};
  const ImageSize result = size();
  SLUICE_TRY_VOID(check_pixels(result));
  SLUICE_TRY_VOID(run_plan(spare_for(result)));
  buffers_->pixels.swap(buffers_->spare);
  plan_ = PlanBuilder(result);
  is_computed_ = true;
  return {};
}

Result<void> PlannedImage::run_plan(std::span<std::uint8_t> output) {
  const Box needed = buffers_->resampler.prepare(plan(), order_);
  RgbView view;
  if (is_computed_) {
    const std::size_t stride = static_cast<std::size_t>(plan_.input().width) * 3;
    const std::size_t first = static_cast<std::size_t>(needed.top) * stride + static_cast<std::size_t>(needed.left) * 3;
    view = {buffers_->pixels.data() + first, stride, {needed.height, needed.width}};
  } else {
    SLUICE_TRY(view, buffers_->decoder.decode(needed));
    buffers_->stopwatch.lap(buffers_->costs.decode, bytes_of(view.size));
  }
  buffers_->resampler.resample(view, output);
  buffers_->stopwatch.lap(buffers_->costs.resample, output.size());
  return {};
}

}  // namespace sluice::pipeline
