// The samples of a data set that has many of them in each file: where each lies, and its label, as the client sends
// them (docs/designs/protocols.md, section 5).
//
// Memory: the bytes as they came, 24 for each sample, and 8 more for each file.
//
// Layout, little-endian: columns of the samples, of the files, of the samples, then the names.
//   labels          i64 for each sample
//   offsets         u64 for each sample
//   file bytes      u64 for each file: its size when its index was made
//   modified        i64 for each file: its time of modification then, Unix time in nanoseconds
//   lengths         u32 for each sample
//   file numbers    u32 for each sample
//   names           absolute, one for each file, each ended by a NUL
//
// Thread safety: immutable after parse().
#pragma once

#include <cstddef>
#include <cstdint>
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

  std::size_t size() const { return samples_; }

  // REQUIRES: index < size()
  FilePart part(std::size_t index) const;

  // REQUIRES: index < size()
  std::int64_t label(std::size_t index) const;

 private:
  Result<void> index_names();
  Result<void> check_ranges() const;
  FilePart::Range range(std::size_t index) const;
  std::size_t file_number(std::size_t index) const;

  std::string bytes_;
  std::size_t samples_ = 0, files_ = 0;
  std::size_t offsets_at_ = 0, file_bytes_at_ = 0, modified_at_ = 0, lengths_at_ = 0;  // offsets into bytes_
  std::size_t file_numbers_at_ = 0, names_at_ = 0;
  std::vector<std::size_t> name_offsets_;
};

}  // namespace sluice::pipeline
