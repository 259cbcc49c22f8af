#include "src/pipeline/range_table.h"

#include <cassert>
#include <cstring>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kSampleBytes = 2 * sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t);
constexpr std::size_t kFileBytes = 2 * sizeof(std::uint64_t);

// The bytes of a table are not aligned: a specification of any length comes before them.
template <class Number>
Number number_at(const std::string& bytes, std::size_t column, std::size_t index) {
  Number number;
  std::memcpy(&number, bytes.data() + column + index * sizeof(number), sizeof(number));
  return number;
}

}  // namespace

Result<RangeTable> RangeTable::parse(std::string bytes, std::uint64_t samples, std::uint64_t files) {
  SLUICE_TRY(RangeTable table, with_columns(std::move(bytes), samples, files));
  SLUICE_TRY(table.name_offsets_, table.index_texts(table.names_at_, "names"));
  SLUICE_TRY_VOID(table.end_at(table.name_offsets_.back()));
  SLUICE_TRY_VOID(table.check_names());
  SLUICE_TRY_VOID(table.check_ranges());
  return table;
}

Result<RangeTable> RangeTable::parse_with_objects(std::string bytes, std::uint64_t samples, std::uint64_t files,
                                                  std::shared_ptr<const ObjectEnvironment> environment) {
  SLUICE_TRY(RangeTable table, with_columns(std::move(bytes), samples, files));
  SLUICE_TRY(table.name_offsets_, table.index_texts(table.names_at_, "names"));
  SLUICE_TRY(table.etag_offsets_, table.index_texts(table.name_offsets_.back(), "ETags"));
  SLUICE_TRY_VOID(table.end_at(table.etag_offsets_.back()));
  table.environment_ = std::move(environment);
  SLUICE_TRY_VOID(table.check_names());
  SLUICE_TRY_VOID(table.check_ranges());
  return table;
}

Result<RangeTable> RangeTable::with_columns(std::string bytes, std::uint64_t samples, std::uint64_t files) {
  // Each part is compared with what is left, so that no sum overflows.
  std::uint64_t left = bytes.size();
  const auto take = [&left](std::uint64_t count, std::uint64_t bytes_each) {
    if (count > left / bytes_each) return false;
    left -= count * bytes_each;
    return true;
  };
  if (!take(samples, kSampleBytes) || !take(files, kFileBytes))
    return invalid_argument("the table of ranges has " + std::to_string(bytes.size()) + " bytes, fewer than " +
                            std::to_string(samples) + " samples in " + std::to_string(files) + " files need");
  RangeTable table;
  table.bytes_ = std::move(bytes);
  table.samples_ = samples;
  table.files_ = files;
  table.offsets_at_ = samples * sizeof(std::int64_t);
  table.file_bytes_at_ = table.offsets_at_ + samples * sizeof(std::uint64_t);
  table.modified_at_ = table.file_bytes_at_ + files * sizeof(std::uint64_t);
  table.lengths_at_ = table.modified_at_ + files * sizeof(std::int64_t);
  table.file_numbers_at_ = table.lengths_at_ + samples * sizeof(std::uint32_t);
  table.names_at_ = table.file_numbers_at_ + samples * sizeof(std::uint32_t);
  return table;
}

FilePart RangeTable::part(std::size_t index) const {
  assert(index < samples_);
  const std::size_t file = file_number(index);
  std::string name = text_at(name_offsets_[file]);
  if (!is_object(file)) return {std::move(name), range(index)};
  return {std::move(name), range(index), {text_at(etag_offsets_[file]), environment_}};
}

std::int64_t RangeTable::label(std::size_t index) const {
  assert(index < samples_);
  return number_at<std::int64_t>(bytes_, 0, index);
}

Result<std::vector<std::size_t>> RangeTable::index_texts(std::size_t at, const char* what) const {
  std::vector<std::size_t> offsets;
  offsets.reserve(files_ + 1);
  for (std::size_t file = 0; file < files_; ++file) {
    const std::size_t end = bytes_.find('\0', at);
    if (end == std::string::npos)
      return invalid_argument("the table of ranges has " + std::string(what) + " for " + std::to_string(file) + " of " +
                              std::to_string(files_) + " files");
    offsets.push_back(at);
    at = end + 1;
  }
  offsets.push_back(at);
  return offsets;
}

Result<void> RangeTable::end_at(std::size_t end) const {
  if (end != bytes_.size()) return invalid_argument("the table of ranges has more names than files");
  return {};
}

Result<void> RangeTable::check_names() const {
  for (std::size_t file = 0; file < files_; ++file) {
    const std::string_view name = text_at(name_offsets_[file]);
    if (is_object(file) ? is_object_url(name) : name.starts_with('/')) continue;
    return invalid_argument("the name of file " + std::to_string(file) + " of the table of ranges is not " +
                            (is_object(file) ? "a URL of an object" : "absolute"));
  }
  return {};
}

Result<void> RangeTable::check_ranges() const {
  for (std::size_t sample = 0; sample < samples_; ++sample) {
    if (file_number(sample) >= files_)
      return invalid_argument("sample " + std::to_string(sample) + " of the table of ranges lies in file " +
                              std::to_string(file_number(sample)) + " of " + std::to_string(files_));
    const auto range = this->range(sample);
    if (range.bytes > range.file_bytes || range.offset > range.file_bytes - range.bytes)
      return invalid_argument("sample " + std::to_string(sample) + " of the table of ranges ends behind its file");
  }
  return {};
}

FilePart::Range RangeTable::range(std::size_t index) const {
  const std::size_t file = file_number(index);
  return {.offset = number_at<std::uint64_t>(bytes_, offsets_at_, index),
          .bytes = number_at<std::uint32_t>(bytes_, lengths_at_, index),
          .file_bytes = number_at<std::uint64_t>(bytes_, file_bytes_at_, file),
          .modified_ns = number_at<std::int64_t>(bytes_, modified_at_, file)};
}

std::size_t RangeTable::file_number(std::size_t index) const {
  return number_at<std::uint32_t>(bytes_, file_numbers_at_, index);
}

}  // namespace sluice::pipeline
