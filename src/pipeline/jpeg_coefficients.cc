#include "src/pipeline/jpeg_coefficients.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace sluice::pipeline {
namespace {

constexpr std::uint32_t kMagic = 0x46434A53;  // "SJCF"
constexpr std::size_t kFixedBytes = 12;
constexpr std::size_t kStepsBytes = kBlockEnd * 2;
constexpr std::size_t kPlaceBytes = 4;

// More than the blocks of most photographs have on average: what is reserved.
constexpr std::size_t kUsualBlockBytes = 48;

template <typename Number>
Number load(const std::uint8_t* from) {
  static_assert(std::endian::native == std::endian::little);
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

template <typename Number>
void store(std::uint8_t* to, Number number) {
  std::memcpy(to, &number, sizeof number);
}

// Where the places of each component's rows begin, and where they all end.
std::array<std::size_t, 4> place_tables(const JpegFrame& frame) {
  std::array<std::size_t, 4> at{};
  std::size_t next = kFixedBytes + frame.component_count * kStepsBytes;
  for (std::size_t i = 0; i < 3; ++i) {
    at[i] = next;
    if (i < frame.component_count) next += static_cast<std::size_t>(frame.block_rows(i)) * kPlaceBytes;
  }
  at[3] = next;
  return at;
}

}  // namespace

JpegCoefficientWriter::JpegCoefficientWriter(const JpegKernels& kernels, const JpegFrame& frame, std::size_t bytes_max,
                                             std::vector<std::uint8_t>& coded)
    : kernels_(&kernels), frame_(&frame), bytes_max_(bytes_max), coded_(coded) {
  assert(!frame.has_narrow_chroma());
  const auto tables = place_tables(frame);
  std::size_t blocks = 0;
  for (std::size_t i = 0; i < frame.component_count; ++i) {
    blocks += static_cast<std::size_t>(frame.block_rows(i)) * static_cast<std::size_t>(frame.block_columns(i));
  }
  coded_.reserve(std::min(bytes_max, tables[3] + blocks * kUsualBlockBytes));
  coded_.assign(tables[3], 0);
  store(coded_.data(), kMagic);
  store(&coded_[4], static_cast<std::uint16_t>(frame.image.height));
  store(&coded_[6], static_cast<std::uint16_t>(frame.image.width));
  coded_[8] = static_cast<std::uint8_t>(frame.component_count);
  coded_[9] = static_cast<std::uint8_t>(frame.pixels_across);
  coded_[10] = static_cast<std::uint8_t>(frame.pixels_down);
  for (std::size_t i = 0; i < frame.component_count; ++i) {
    for (std::size_t k = 0; k < kBlockEnd; ++k) {
      store(&coded_[kFixedBytes + i * kStepsBytes + 2 * k], static_cast<std::uint16_t>(frame.steps[i][k]));
    }
    Component& component = components_[i];
    component.columns = frame.block_columns(i);
    component.rows = frame.block_rows(i);
    component.places_at = tables[i];
    for (Row& row : component.of_mcu) {
      const auto columns = static_cast<std::size_t>(component.columns);
      row.lengths.resize(columns);
      row.packed.resize(columns * kPackedBytesMax + kPackedMarginBytes);
    }
  }
}

bool JpegCoefficientWriter::add(std::size_t component, int row, int column, const CoefficientBlock& block) {
  Component& target = components_[component];
  if (row >= target.rows || column >= target.columns) return true;
  Row& current = target.of_mcu[static_cast<std::size_t>(row % frame_->rows_per_mcu(component))];
  const std::uint32_t length = kernels_->pack_block(block, current.packed.data() + current.bytes);
  if (length == 0) return false;
  assert(current.blocks == static_cast<std::size_t>(column));
  current.number = row;
  current.lengths[current.blocks++] = static_cast<std::uint8_t>(length);
  current.bytes += length;
  return true;
}

bool JpegCoefficientWriter::finish_rows() {
  for (std::size_t i = 0; i < frame_->component_count; ++i) {
    Component& component = components_[i];
    for (Row& row : component.of_mcu) {
      if (row.blocks == 0) continue;
      assert(row.blocks == row.lengths.size());
      store(&coded_[component.places_at + static_cast<std::size_t>(row.number) * kPlaceBytes],
            static_cast<std::uint32_t>(coded_.size()));
      if (!append(row.lengths) || !append(std::span(row.packed).first(row.bytes))) return false;
      row.blocks = row.bytes = 0;
    }
  }
  return true;
}

bool JpegCoefficientWriter::finish() {
  constexpr std::array<std::uint8_t, kPackedMarginBytes> kZeros{};
  return append(kZeros);
}

bool JpegCoefficientWriter::append(std::span<const std::uint8_t> bytes) {
  if (coded_.size() + bytes.size() > bytes_max_) return false;
  coded_.insert(coded_.end(), bytes.begin(), bytes.end());
  return true;
}

std::optional<ImageSize> JpegCoefficientDecoder::open(std::span<const std::uint8_t> coded) {
  if (coded.size() < kFixedBytes || load<std::uint32_t>(coded.data()) != kMagic) return std::nullopt;
  frame_.image = {load<std::uint16_t>(&coded[4]), load<std::uint16_t>(&coded[6])};
  frame_.component_count = coded[8];
  frame_.pixels_across = coded[9];
  frame_.pixels_down = coded[10];
  const bool is_grey = frame_.component_count == 1;
  const bool has_known_kind = (is_grey || frame_.component_count == 3) && frame_.pixels_across >= 1 &&
                              frame_.pixels_across <= (is_grey ? 1 : 2) && frame_.pixels_down >= 1 &&
                              frame_.pixels_down <= frame_.pixels_across;
  if (!has_known_kind || frame_.image.height == 0 || frame_.image.width == 0 || frame_.has_narrow_chroma()) {
    return std::nullopt;
  }
  const auto tables = place_tables(frame_);
  if (coded.size() < tables[3] + kPackedMarginBytes) return std::nullopt;
  std::copy_n(tables.begin(), 3, places_at_.begin());
  for (std::size_t i = 0; i < frame_.component_count; ++i) {
    for (std::size_t k = 0; k < kBlockEnd; ++k) {
      frame_.steps[i][k] =
          static_cast<std::int16_t>(load<std::uint16_t>(&coded[kFixedBytes + i * kStepsBytes + 2 * k]));
    }
  }
  coded_ = coded;
  return frame_.image;
}

std::optional<RgbView> JpegCoefficientDecoder::decode(const Box& box) {
  pixels_.start(frame_, box);
  for (int mcu_row = pixels_.first_mcu_row(); mcu_row <= pixels_.last_mcu_row(); ++mcu_row) {
    pixels_.begin_mcu_row(mcu_row);
    for (std::size_t i = 0; i < frame_.component_count; ++i) {
      const int rows = frame_.rows_per_mcu(i);
      for (int row = mcu_row * rows; row < (mcu_row + 1) * rows; ++row) {
        if (pixels_.block_rows(i).has(row) && !read_row(i, row)) return std::nullopt;
      }
    }
    pixels_.finish_mcu_row();
  }
  return pixels_.view();
}

bool JpegCoefficientDecoder::read_row(std::size_t component, int row) {
  // A block may begin anywhere before `end`: it has at most kPackedMarginBytes, and what it reads beyond.
  const std::size_t end = coded_.size() - kPackedMarginBytes;
  const auto columns = static_cast<std::size_t>(frame_.block_columns(component));
  const std::size_t place =
      load<std::uint32_t>(&coded_[places_at_[component] + static_cast<std::size_t>(row) * kPlaceBytes]);
  if (place > end || end - place < columns) return false;
  const std::uint8_t* const lengths = coded_.data() + place;
  const JpegPlane::Range needed = pixels_.block_columns(component);
  std::size_t next = place + columns;
  for (int column = 0; column < needed.first; ++column) next += lengths[column];
  for (int column = needed.first; column < needed.end; ++column) {
    if (next >= end) return false;
    const std::uint32_t length = kernels_->unpack_block(coded_.data() + next, block_);
    if (length != lengths[column]) return false;
    pixels_.put(component, row, column, block_, length > kPackedFixedBytes);
    next += length;
  }
  return true;
}

}  // namespace sluice::pipeline
