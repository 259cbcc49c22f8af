#include "src/pipeline/planned_image.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

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

// Room for an image of `size`, which a Resampler may read.
std::span<std::uint8_t> room_in(std::vector<std::uint8_t>& buffer, ImageSize size) {
  buffer.resize(std::max(buffer.size(), bytes_of(size) + kReadableBytesBehindPixels));
  return std::span(buffer).first(bytes_of(size));
}

RgbView part_of(const RgbView& view, const Box& box) {
  return {view.row(box.top) + static_cast<std::size_t>(box.left) * 3, view.stride_bytes, {box.height, box.width}};
}

// What a resampler would make of a plan that crops and flips, and no more, in two passes.
void copy_rows(const RgbView& view, bool flip, bool flip_vertical, std::span<std::uint8_t> output) {
  const std::size_t row_bytes = bytes_of({1, view.size.width});
  std::uint8_t* out = output.data();
  for (int y = 0; y < view.size.height; ++y, out += row_bytes) {
    const std::uint8_t* row = view.row(flip_vertical ? view.size.height - 1 - y : y);
    if (!flip) {
      std::memcpy(out, row, row_bytes);
      continue;
    }
    for (std::size_t at = 0; at < row_bytes; at += 3) std::memcpy(out + at, row + row_bytes - 3 - at, 3);
  }
}

}  // namespace

void PlannedImage::begin(std::string_view name) {
  name_ = name;
  ++number_;
  is_turn_ = true;
  was_touched_ = false;
}

Result<void> PlannedImage::end() {
  if (order_ == OpOrder::kProgram) SLUICE_TRY_VOID(settle());
  const bool is_waiting =
      (making_ && is_turn_of(making_->waiting)) || (!changes_.empty() && is_turn_of(changes_.back().waiting));
  is_turn_ = false;
  if (was_touched_) buffers_->stopwatch.lap(buffers_->costs.ops[name_], is_waiting ? 0 : bytes_of(size()));
  return {};
}

// Mirrors what is behind a change as it does what is before it, unless the change moves pixels.
Result<void> PlannedImage::flip_horizontally() {
  if (has_making()) SLUICE_TRY_VOID(compute());
  plan_.flip_horizontally();
  return {};
}

Result<void> PlannedImage::flip_vertically() {
  if (has_making()) SLUICE_TRY_VOID(compute());
  plan_.flip_vertically();
  return {};
}

Result<void> PlannedImage::resize(ImageSize size, Interpolation interpolation) {
  const bool fits_plan = is_relaxed() ? !plan_.is_resized() : plan_.can_resize();
  if (!fits_plan || !may_wait_behind(size, interpolation)) SLUICE_TRY_VOID(compute());
  plan_.resize(size, interpolation);
  return {};
}

// Behind a resize that makes the image larger, a change would have more to do.
bool PlannedImage::may_wait_behind(ImageSize resized, Interpolation interpolation) const {
  if (changes_.empty()) return true;
  return (is_relaxed() || interpolation == Interpolation::kNearest) && bytes_of(resized) <= bytes_of(size());
}

bool PlannedImage::has_making() const {
  return std::any_of(changes_.begin(), changes_.end(), [](const Change& change) { return change.make != nullptr; });
}

Result<void> PlannedImage::pad(const Padding& padding) {
  was_touched_ = true;
  SLUICE_TRY_VOID(compute());
  const ImageSize from = size();
  const ImageSize to{from.height + padding.top + padding.bottom, from.width + padding.left + padding.right};
  SLUICE_TRY_VOID(check_pixels(to));
  const std::span<std::uint8_t> padded = room_in(buffers_->spare, to);
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

Result<void> PlannedImage::replace(MakePart make, Scale scale) {
  if (is_relaxed() && scale == Scale::kIsFree) {
    changes_.push_back({waiting(), nullptr, std::move(make)});
    return {};
  }
  SLUICE_TRY_VOID(compute());
  making_ = Making{waiting(), std::move(make)};
  return {};
}

Result<void> PlannedImage::settle() {
  const bool is_mirrored = is_relaxed() && (plan().flip || plan().flip_vertical);  // a resize would come before that
  if (!making_ && changes_.empty() && !is_mirrored) return {};
  return compute();
}

Result<RgbView> PlannedImage::share() {
  const bool is_whole_file = !is_of_pixels_ && !view_ && plan_.is_identity() && changes_.empty();
  if (!is_whole_file) {
    SLUICE_TRY_VOID(compute());
    buffers_->pixels.swap(buffers_->shared);
    return RgbView{buffers_->shared.data(), bytes_of({1, size().width}), size()};
  }
  SLUICE_TRY(const RgbView decoded, buffers_->decoder.decode({0, 0, size().height, size().width}));
  buffers_->stopwatch.lap(buffers_->costs.decode, bytes_of(decoded.size));
  return decoded;
}

Result<void> PlannedImage::write_to(std::span<std::uint8_t> output) {
  assert(output.size() == bytes_of(size()));
  if (has_making()) SLUICE_TRY_VOID(compute());
  if (is_computed()) {
    std::memcpy(output.data(), buffers_->pixels.data(), output.size());
    buffers_->stopwatch.lap(buffers_->costs.resample, output.size());
  } else {
    SLUICE_TRY_VOID(run_plan(output));
  }
  run_changes(output);
  return {};
}

Result<void> PlannedImage::compute() {
  if (!is_computed()) {
    const ImageSize result = size();
    SLUICE_TRY_VOID(check_pixels(result));
    SLUICE_TRY_VOID(run_plan(room_in(buffers_->spare, result)));
    buffers_->pixels.swap(buffers_->spare);
    plan_ = PlanBuilder(result);
    making_.reset();
    is_of_pixels_ = true;
  }
  run_changes(std::span(buffers_->pixels).first(bytes_of(size())));
  return {};
}

Result<void> PlannedImage::run_plan(std::span<std::uint8_t> output) {
  const bool is_copied = !plan_.is_resized();
  const Box needed = is_copied ? plan().source : buffers_->resampler.prepare(plan(), passes_);
  if (making_ && plan_.only_crops()) {
    run_making(needed, output);
    return {};
  }
  RgbView view;
  if (making_) {
    const ImageSize size{needed.height, needed.width};
    const std::span<std::uint8_t> made = room_in(buffers_->made, size);
    run_making(needed, made);
    view = {made.data(), bytes_of({1, size.width}), size};
  } else if (is_of_pixels_) {
    view = part_of({buffers_->pixels.data(), bytes_of({1, plan_.input().width}), plan_.input()}, needed);
  } else if (view_) {
    view = part_of(*view_, needed);
  } else {
    SLUICE_TRY(view, buffers_->decoder.decode(needed));
    buffers_->stopwatch.lap(buffers_->costs.decode, bytes_of(view.size));
  }
  if (is_copied) {
    copy_rows(view, plan().flip, plan().flip_vertical, output);
  } else {
    buffers_->resampler.resample(view, output);
  }
  buffers_->stopwatch.lap(buffers_->costs.resample, output.size());
  return {};
}

void PlannedImage::run_making(const Box& part, std::span<std::uint8_t> output) {
  making_->make(std::span(buffers_->pixels).first(bytes_of(plan_.input())), plan_.input(), part, output);
  count(making_->waiting, output.size());
}

// REQUIRES: `pixels` are those that the plan has made; where a change makes others, they are buffers_->pixels
void PlannedImage::run_changes(std::span<std::uint8_t> pixels) {
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const auto& [waiting, each, make] = changes_[i];
    if (each) {
      each(pixels);
    } else {
      make(pixels, size(), {0, 0, size().height, size().width}, room_in(buffers_->spare, size()));
      buffers_->pixels.swap(buffers_->spare);
      pixels = std::span(buffers_->pixels).first(pixels.size());
    }
    const bool is_last = i + 1 == changes_.size() || changes_[i + 1].waiting.number != waiting.number;
    if (is_last) count(waiting, pixels.size());
  }
  changes_.clear();
}

void PlannedImage::count(const Waiting& waiting, std::uint64_t bytes) {
  Cost& cost = buffers_->costs.ops[waiting.op];
  if (is_turn_of(waiting)) {  // end() counts what it has made
    was_touched_ = true;
    return buffers_->stopwatch.lap(cost, 0);
  }
  buffers_->stopwatch.lap(cost, bytes, waiting.bytes - std::min(bytes, waiting.bytes));
}

}  // namespace sluice::pipeline
