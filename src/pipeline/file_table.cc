#include "src/pipeline/file_table.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kHeadBytes = 3 * sizeof(std::uint64_t);
constexpr std::size_t kLabelBytes = sizeof(std::int64_t);
constexpr std::size_t kRunBytes = 2 * sizeof(std::uint32_t);
constexpr std::size_t kNamesPerOffset = 64;

// The bytes of a table are not aligned: a specification of any length comes before them.
template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

std::uint32_t directory_of_run(std::string_view bytes, std::size_t runs_at, std::size_t run) {
  return number_at<std::uint32_t>(bytes, runs_at + run * kRunBytes);
}

std::uint32_t first_file_of_run(std::string_view bytes, std::size_t runs_at, std::size_t run) {
  return number_at<std::uint32_t>(bytes, runs_at + run * kRunBytes + sizeof(std::uint32_t));
}

}  // namespace

Result<FileTable> FileTable::parse(std::string bytes, std::uint64_t files) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const std::string_view view = *owner;
  return parse(view, files, std::move(owner));
}

Result<FileTable> FileTable::parse(std::string_view all, std::uint64_t files, std::shared_ptr<const void> owner) {
  FileTable table;
  table.bytes_ = all;
  table.owner_ = std::move(owner);
  if (all.size() < kHeadBytes) return invalid_argument("the file table is cut off");
  const auto runs = number_at<std::uint64_t>(all, 0);
  const auto directories_bytes = number_at<std::uint64_t>(all, 8);
  const auto names_bytes = number_at<std::uint64_t>(all, 16);
  // Each part is compared with what is left, so that no sum overflows.
  std::uint64_t left = all.size() - kHeadBytes;
  const auto take = [&left](std::uint64_t count, std::uint64_t bytes_each) {
    if (count > left / bytes_each) return false;
    left -= count * bytes_each;
    return true;
  };
  if (!take(files, kLabelBytes) || !take(runs, kRunBytes) || !take(directories_bytes, 1) || left != names_bytes)
    return invalid_argument("the file table has " + std::to_string(all.size()) + " bytes, which are not those of " +
                            std::to_string(files) + " files");
  table.files_ = files;
  table.runs_ = runs;
  table.runs_at_ = kHeadBytes + files * kLabelBytes;
  table.directories_at_ = table.runs_at_ + runs * kRunBytes;
  table.names_at_ = table.directories_at_ + directories_bytes;
  SLUICE_TRY_VOID(table.index_directories());
  SLUICE_TRY_VOID(table.index_names());
  return table;
}

std::string FileTable::path(std::size_t index) const {
  assert(index < files_);
  std::size_t run = 0;  // the last one that begins at `index` or before
  for (std::size_t step = std::size_t{1} << 32; step > 0; step /= 2)
    if (run + step < runs_ && first_file_of_run(bytes_, runs_at_, run + step) <= index) run += step;
  std::size_t name = name_offsets_[index / kNamesPerOffset];
  for (std::size_t skipped = index % kNamesPerOffset; skipped > 0; --skipped) name += text_at(name).size() + 1;
  const std::string_view directory = text_at(directory_offsets_[directory_of_run(bytes_, runs_at_, run)]);
  std::string path(directory);
  if (!path.empty() && path.back() != '/') path += '/';
  return path += text_at(name);
}

std::int64_t FileTable::label(std::size_t index) const {
  assert(index < files_);
  return number_at<std::int64_t>(bytes_, kHeadBytes + index * kLabelBytes);
}

Result<void> FileTable::index_directories() {
  for (std::size_t at = directories_at_; at < names_at_;) {
    const std::size_t end = bytes_.find('\0', at);
    if (end >= names_at_) return invalid_argument("the file table's last directory is cut off");
    directory_offsets_.push_back(at);
    at = end + 1;
  }
  if ((runs_ == 0) != (files_ == 0)) return invalid_argument("the file table has files without a directory");
  std::int64_t previous = -1;
  for (std::size_t run = 0; run < runs_; ++run) {
    const std::int64_t first = first_file_of_run(bytes_, runs_at_, run);
    const bool rises = run == 0 ? first == 0 : first > previous;
    if (!rises || static_cast<std::size_t>(first) >= files_ ||
        directory_of_run(bytes_, runs_at_, run) >= directory_offsets_.size())
      return invalid_argument("run " + std::to_string(run) + " of the file table does not fit its files");
    previous = first;
  }
  return {};
}

Result<void> FileTable::index_names() {
  name_offsets_.reserve(files_ / kNamesPerOffset + 1);
  std::size_t at = names_at_;
  for (std::size_t file = 0; file < files_; ++file) {
    if (file % kNamesPerOffset == 0) name_offsets_.push_back(at);
    const std::size_t end = bytes_.find('\0', at);
    if (end == std::string_view::npos)
      return invalid_argument("the file table has names for " + std::to_string(file) + " of " + std::to_string(files_) +
                              " files");
    at = end + 1;
  }
  if (at != bytes_.size()) return invalid_argument("the file table has more names than files");
  return {};
}

std::string_view FileTable::text_at(std::size_t offset) const { return std::string_view(bytes_.data() + offset); }

}  // namespace sluice::pipeline
