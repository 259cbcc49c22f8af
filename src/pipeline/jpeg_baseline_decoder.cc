#include "src/pipeline/jpeg_baseline_decoder.h"

#include <algorithm>
#include <cstring>

#include "src/pipeline/jpeg_transform.h"

namespace sluice::pipeline {
namespace {

constexpr std::uint8_t kFirstRestartMarker = 0xD0;
constexpr std::uint8_t kRestartMarkers = 8;

// libjpeg does not smooth chroma this narrow.
constexpr int kNarrowChroma = 2;

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

std::optional<RgbView> BaselineJpegDecoder::decode(const JpegScan& scan, const Box& box) {
  if (!prepare(scan, box)) return std::nullopt;
  const int mcu_columns = (scan.image.width - 1) / (kBlockSide * scan.pixels_across) + 1;
  int needed_columns = 0;
  int last_mcu_row = 0;
  for (std::size_t i = 0; i < scan.component_count; ++i) {
    needed_columns = std::max(needed_columns, components_[i].plane.last_mcu_column() + 1);
    last_mcu_row = std::max(last_mcu_row, components_[i].plane.last_mcu_row());
  }
  for (int mcu_row = 0; mcu_row < last_mcu_row; ++mcu_row) {
    if (!read_mcu_row(scan, mcu_row, mcu_columns)) return std::nullopt;
    // The last row of pixels is smoothed with the next row of chroma.
    const int end_row = (mcu_row + 1) * kBlockSide * scan.pixels_down - (scan.pixels_down > 1 ? 1 : 0);
    write_rows(scan, box, end_row);
  }
  if (!read_mcu_row(scan, last_mcu_row, needed_columns)) return std::nullopt;
  write_rows(scan, box, box.top + box.height);
  const bool sound =
      reader_.bits_left() >= 0 && (data_.marker() == kEndOfImageMarker || has_end_of_image(data_.rest()));
  if (!sound) return std::nullopt;
  return RgbView{pixels_.data(), stride_bytes_, {box.height, box.width}};
}

bool BaselineJpegDecoder::prepare(const JpegScan& scan, const Box& box) {
  units_.clear();
  for (std::size_t i = 0; i < scan.component_count; ++i) {
    if (!prepare_component(scan, box, i)) return false;
  }
  stride_bytes_ = (static_cast<std::size_t>(box.width) + kPixelRowMargin) * 3;
  grow(pixels_, stride_bytes_ * static_cast<std::size_t>(box.height));
  next_row_ = box.top;
  next_restart_marker_ = 0;
  mcus_to_restart_ = scan.restart_interval;
  data_.start(scan.data);
  return begin_segment() && (scan.restart_interval != 0 || data_.marker() == kEndOfImageMarker);
}

bool BaselineJpegDecoder::prepare_component(const JpegScan& scan, const Box& box, std::size_t index) {
  Component& component = components_[index];
  const bool is_luma = index == 0;
  const JpegPlane::Shape shape{
      .image = scan.image,
      .columns_per_mcu = is_luma ? scan.pixels_across : 1,
      .rows_per_mcu = is_luma ? scan.pixels_down : 1,
      .pixels_across = is_luma ? 1 : scan.pixels_across,
      .pixels_down = is_luma ? 1 : scan.pixels_down,
  };
  component.plane.reset(shape, box);
  if (shape.pixels_across > 1 && component.plane.width() <= kNarrowChroma) return false;
  if (!prepare_coding(scan, index)) return false;
  for (int row = 0; row < shape.rows_per_mcu; ++row) {
    for (int column = 0; column < shape.columns_per_mcu; ++column) {
      units_.push_back({index, row, column, shape.rows_per_mcu, shape.columns_per_mcu});
    }
  }
  grow(widened_[index], static_cast<std::size_t>(box.width) + 2 + kSampleRowMargin);
  return true;
}

// Tables that a component shares with an earlier one stay in the nearest cache.
bool BaselineJpegDecoder::prepare_coding(const JpegScan& scan, std::size_t index) {
  const JpegScan::Component& wanted = scan.components[index];
  Component& component = components_[index];
  component.coding = {&component.first, &component.others};
  if (index > 1 && wanted.first == scan.components[index - 1].first &&
      wanted.others == scan.components[index - 1].others) {
    component.coding = components_[index - 1].coding;
    return true;
  }
  return component.first.define(HuffmanTable::Kind::kFirst, wanted.first) && component.others.define(wanted.others);
}

bool BaselineJpegDecoder::begin_segment() {
  if (!data_.next_segment()) return false;
  const std::span<const std::uint8_t> segment = data_.segment();
  reader_ = {0, 0, segment.data(), segment.data() + segment.size()};
  return true;
}

bool BaselineJpegDecoder::restart(const JpegScan& scan) {
  // libjpeg warns of whole bytes that are left over.
  if (reader_.bits_left() < 0 || reader_.bits_left() >= 8) return false;
  if (data_.marker() != kFirstRestartMarker + next_restart_marker_ || !begin_segment()) return false;
  next_restart_marker_ = (next_restart_marker_ + 1) % kRestartMarkers;
  mcus_to_restart_ = scan.restart_interval;
  for (Component& component : components_) component.coding.last_first = 0;
  return true;
}

bool BaselineJpegDecoder::read_mcu_row(const JpegScan& scan, int mcu_row, int mcu_columns) {
  for (std::size_t i = 0; i < scan.component_count; ++i) components_[i].plane.begin_mcu_row(mcu_row);
  for (int column = 0; column < mcu_columns; ++column) {
    if (scan.restart_interval != 0) {
      if (mcus_to_restart_ == 0 && !restart(scan)) return false;
      --mcus_to_restart_;
    }
    for (const Unit& unit : units_) {
      if (!read_unit(scan, unit, mcu_row, column)) return false;
    }
  }
  for (std::size_t i = 0; i < scan.component_count; ++i) components_[i].plane.finish_mcu_row();
  return true;
}

bool BaselineJpegDecoder::read_unit(const JpegScan& scan, const Unit& unit, int mcu_row, int mcu_column) {
  JpegPlane& plane = components_[unit.component].plane;
  BlockCoding& coding = components_[unit.component].coding;
  const int row = mcu_row * unit.rows_per_mcu + unit.row;
  const int column = mcu_column * unit.columns_per_mcu + unit.column;
  if (!plane.needs_block(row, column)) return kernels_->skip_block(reader_, coding);

  const std::uint32_t end = kernels_->read_block(reader_, coding, block_);
  if (end == 0) return false;
  const auto& steps = scan.components[unit.component].steps;
  std::uint8_t* target = plane.at(row * kBlockSide, column * kBlockSide);
  if (end > 1) {
    kernels_->inverse_transform(block_, steps.data(), target, plane.stride_bytes());
    return true;
  }
  const std::uint8_t flat = flat_sample(block_.values[0], steps[0]);
  for (int y = 0; y < kBlockSide; ++y, target += plane.stride_bytes()) std::memset(target, flat, kBlockSide);
  return true;
}

void BaselineJpegDecoder::write_rows(const JpegScan& scan, const Box& box, int end_row) {
  const auto width = static_cast<std::size_t>(box.width);
  for (const int end = std::min(end_row, box.top + box.height); next_row_ < end; ++next_row_) {
    const std::uint8_t* luma = components_[0].plane.at(next_row_, box.left);
    std::uint8_t* row = pixels_.data() + static_cast<std::size_t>(next_row_ - box.top) * stride_bytes_;
    if (scan.component_count == 1) {
      kernels_->grey_to_rgb(luma, row, width);
      continue;
    }
    kernels_->to_rgb(luma, chroma_row(scan, box, next_row_, 1), chroma_row(scan, box, next_row_, 2), row, width);
  }
}

const std::uint8_t* BaselineJpegDecoder::chroma_row(const JpegScan& scan, const Box& box, int row,
                                                    std::size_t component) {
  JpegPlane& plane = components_[component].plane;
  if (scan.pixels_across == 1) return plane.at(row, box.left);
  const int first = box.left / 2;
  const auto count = static_cast<std::size_t>((box.left + box.width - 1) / 2 - first + 1);
  std::uint8_t* widened = widened_[component].data();
  if (scan.pixels_down == 1) {
    kernels_->widen(plane.at(row, first), widened, count);
  } else {
    // The nearer row of samples counts three times.
    const int near = row / 2;
    const int far = std::clamp(row % 2 == 0 ? near - 1 : near + 1, 0, plane.height() - 1);
    kernels_->widen_between(plane.at(near, first), plane.at(far, first), widened, count);
  }
  return widened + box.left % 2;
}

}  // namespace sluice::pipeline
