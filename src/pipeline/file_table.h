// The image files of a data set: paths and labels, as the client sends them (docs/designs/protocols.md, section 5).
//
// A data set has a million files and more. So the bytes stay as they came, and a path is put together when it is asked
// for: about a microsecond, beside a millisecond for its image. Memory: the bytes, if no other has them, and 8 more for
// each 64 files.
//
// Layout, little-endian: three u64 (runs, bytes of the directories, bytes of the names), then
//   labels       i64 for each file
//   runs         u32 directory, u32 first file; a run lasts until the next one begins
//   directories  each ended by a NUL; relative to the source's root, or absolute
//   names        one for each file, each ended by a NUL
//
// Thread safety: immutable after parse().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace sluice::pipeline {

class FileTable {
 public:
  FileTable() = default;  // of no files

  // InvalidArgument says which part of the bytes does not fit the others. Whatever the bytes are, a table that is
  // returned can be read without harm.
  static Result<FileTable> parse(std::string bytes, std::uint64_t files);
  // The same over bytes that stay what and where they are as long as `owner` is there.
  static Result<FileTable> parse(std::string_view bytes, std::uint64_t files, std::shared_ptr<const void> owner);

  std::size_t size() const { return files_; }

  // Relative to the source's root, or absolute. REQUIRES: index < size()
  std::string path(std::size_t index) const;

  // REQUIRES: index < size()
  std::int64_t label(std::size_t index) const;

 private:
  Result<void> index_names();
  Result<void> index_directories();
  std::string_view text_at(std::size_t offset) const;

  std::shared_ptr<const void> owner_;
  std::string_view bytes_;
  std::size_t files_ = 0, runs_ = 0;
  std::size_t runs_at_ = 0, directories_at_ = 0, names_at_ = 0;  // offsets into bytes_
  std::vector<std::size_t> directory_offsets_;
  std::vector<std::size_t> name_offsets_;  // of every 64th file
};

}  // namespace sluice::pipeline
