// The samples of a data set that has many of them in each file: where each lies, and its label, as the client sends
// them (docs/designs/protocols.md, section 5).
//
// Memory: the bytes as they came, 24 for each sample, and 8 more for each file, 16 where there are objects.
//
// Layout, little-endian: columns of the samples, of the files, of the samples, then the names.
//   labels          i64 for each sample
//   offsets         u64 for each sample
//   file bytes      u64 for each file: its size when its index was made
//   modified        i64 for each file: its time of modification then, Unix time in nanoseconds; a digest of an ETag
//   lengths         u32 for each sample
//   file numbers    u32 for each sample
//   names           absolute, one for each file, each ended by a NUL
//   ETags           only where files may be objects: one for each, ended by a NUL, empty for a file. The name of an
//                   object is its URL.
//
// Thread safety: immutable after parse().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/file_reader.h"

namespace sluice::pipeline {

class RangeTable {
 public:
  RangeTable() = default;  // of no samples

  // InvalidArgument says which part of the bytes does not fit the others. Every sample of a table that is returned lies
  // within the size of its file.
  static Result<RangeTable> parse(std::string bytes, std::uint64_t samples, std::uint64_t files);
  // Of a table with ETags. `environment`: for the parts that are of objects.
  static Result<RangeTable> parse_with_objects(std::string bytes, std::uint64_t samples, std::uint64_t files,
                                               std::shared_ptr<const ObjectEnvironment> environment);

  std::size_t size() const { return samples_; }
  // Whether files may be objects.
  bool has_objects() const { return !etag_offsets_.empty(); }

  // REQUIRES: index < size()
  FilePart part(std::size_t index) const;

  // REQUIRES: index < size()
  std::int64_t label(std::size_t index) const;

 private:
  static Result<RangeTable> with_columns(std::string bytes, std::uint64_t samples, std::uint64_t files);
  // Where each of `files_` texts begins from `at` on, each ended by a NUL; then where the last one ends. `what`: they
  // are, for errors.
  Result<std::vector<std::size_t>> index_texts(std::size_t at, const char* what) const;
  Result<void> end_at(std::size_t end) const;
  Result<void> check_names() const;
  Result<void> check_ranges() const;
  const char* text_at(std::size_t offset) const { return bytes_.data() + offset; }
  bool is_object(std::size_t file) const { return !etag_offsets_.empty() && *text_at(etag_offsets_[file]) != 0; }
  FilePart::Range range(std::size_t index) const;
  std::size_t file_number(std::size_t index) const;

  std::string bytes_;
  std::size_t samples_ = 0, files_ = 0;
  std::size_t offsets_at_ = 0, file_bytes_at_ = 0, modified_at_ = 0, lengths_at_ = 0;  // offsets into bytes_
  std::size_t file_numbers_at_ = 0, names_at_ = 0;
  std::vector<std::size_t> name_offsets_;
  std::vector<std::size_t> etag_offsets_;  // empty: all are files
  std::shared_ptr<const ObjectEnvironment> environment_;
};

}  // namespace sluice::pipeline
