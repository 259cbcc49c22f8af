#include "src/pipeline/jpeg_baseline_decoder.h"

namespace sluice::pipeline {
namespace {

constexpr std::uint8_t kFirstRestartMarker = 0xD0;
constexpr std::uint8_t kRestartMarkers = 8;

}  // namespace

std::optional<RgbView> BaselineJpegDecoder::decode(const JpegScan& scan, const Box& box) {
  if (!prepare(scan)) return std::nullopt;
  pixels_.start(scan.frame, box);
  for (Unit& unit : units_) {
    unit.needed_rows = pixels_.block_rows(unit.component);
    unit.needed_columns = pixels_.block_columns(unit.component);
  }
  const auto read = [this](const Unit& unit, int mcu_row, int column) { return read_unit(unit, mcu_row, column); };
  const int last_mcu_row = pixels_.last_mcu_row();
  for (int mcu_row = 0; mcu_row <= last_mcu_row; ++mcu_row) {
    const int columns = mcu_row < last_mcu_row ? scan.frame.mcu_columns() : pixels_.end_mcu_column();
    pixels_.begin_mcu_row(mcu_row);
    if (!read_mcu_row(scan, mcu_row, columns, read)) return std::nullopt;
    pixels_.finish_mcu_row();
  }
  if (!is_sound()) return std::nullopt;
  return pixels_.view();
}

bool BaselineJpegDecoder::read_all(const JpegScan& scan, JpegCoefficientWriter& writer) {
  if (!prepare(scan)) return false;
  const auto read = [this, &writer](const Unit& unit, int mcu_row, int mcu_column) {
    const std::uint32_t end = kernels_->read_block(reader_, components_[unit.component].coding, block_);
    return end != 0 && writer.add(unit.component, mcu_row * unit.rows_per_mcu + unit.row,
                                  mcu_column * unit.columns_per_mcu + unit.column, block_);
  };
  for (int mcu_row = 0; mcu_row < scan.frame.mcu_rows(); ++mcu_row) {
    if (!read_mcu_row(scan, mcu_row, scan.frame.mcu_columns(), read) || !writer.finish_rows()) return false;
  }
  return is_sound();
}

bool BaselineJpegDecoder::prepare(const JpegScan& scan) {
  if (scan.frame.has_narrow_chroma()) return false;
  for (std::size_t i = 0; i < scan.frame.component_count; ++i) {
    if (!prepare_coding(scan, i)) return false;
  }
  prepare_units(scan.frame);
  next_restart_marker_ = 0;
  mcus_to_restart_ = scan.restart_interval;
  data_.start(scan.data);
  return begin_segment() && (scan.restart_interval != 0 || data_.marker() == kEndOfImageMarker);
}

void BaselineJpegDecoder::prepare_units(const JpegFrame& frame) {
  units_.clear();
  for (std::size_t i = 0; i < frame.component_count; ++i) {
    const int rows = frame.rows_per_mcu(i);
    const int columns = frame.columns_per_mcu(i);
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) units_.push_back({i, row, column, rows, columns, {}, {}});
    }
  }
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

template <typename Read>
bool BaselineJpegDecoder::read_mcu_row(const JpegScan& scan, int mcu_row, int mcu_columns, const Read& read) {
  for (int column = 0; column < mcu_columns; ++column) {
    if (scan.restart_interval != 0) {
      if (mcus_to_restart_ == 0 && !restart(scan)) return false;
      --mcus_to_restart_;
    }
    for (const Unit& unit : units_) {
      if (!read(unit, mcu_row, column)) return false;
    }
  }
  return true;
}

bool BaselineJpegDecoder::read_unit(const Unit& unit, int mcu_row, int mcu_column) {
  BlockCoding& coding = components_[unit.component].coding;
  const int row = mcu_row * unit.rows_per_mcu + unit.row;
  const int column = mcu_column * unit.columns_per_mcu + unit.column;
  if (!unit.needed_rows.has(row) || !unit.needed_columns.has(column)) return kernels_->skip_block(reader_, coding);

  const std::uint32_t end = kernels_->read_block(reader_, coding, block_);
  if (end == 0) return false;
  pixels_.put(unit.component, row, column, block_, end > 1);
  return true;
}

bool BaselineJpegDecoder::is_sound() const {
  return reader_.bits_left() >= 0 && (data_.marker() == kEndOfImageMarker || has_end_of_image(data_.rest()));
}

}  // namespace sluice::pipeline
