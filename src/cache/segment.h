// One segment file: a head that names the format's version, then records and gaps, one after the other.
//
// No byte of it is trusted: it may have been cut, overwritten or written by anybody. What is not as it should be ends
// the segment; whatever comes before is good. Thread safety: pure functions over a DiskFile.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>
#include <vector>

#include "src/cache/disk.h"
#include "src/cache/record.h"

namespace sluice::cache {

// To be raised with every change of the layout. Segments of another version are not read.
inline constexpr std::uint32_t kFormatVersion = 2;
inline constexpr std::size_t kSegmentHeadBytes = 16;

std::vector<std::uint8_t> segment_head(std::uint32_t version = kFormatVersion);

struct ScannedRecord {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // head and value
  std::string_view place;   // until the next one is scanned
  std::string_view version;
  bool is_gap = false;  // no record: those that were here are gone
};

struct SegmentScan {
  enum class End { kComplete, kDamaged, kOtherVersion, kFailed, kStopped };  // kFailed: the disk did not answer
  End end = End::kComplete;
  std::uint64_t good_bytes = 0;  // the segment's head and the records that were found; 0: not even the head
};

// Where the gap at `offset` ends; `offset` if there is none. For a scan beside which records go.
using EndOfGap = std::function<std::uint64_t(std::uint64_t offset)>;

// Tells `found` of each record and gap, in order, from heads alone: values are checked when they are read. Gaps that
// `end_of_gap` knows are passed by without a look at the file.
SegmentScan scan_segment(const DiskFile& file, std::uint64_t file_bytes, const std::stop_token& stop,
                         const std::function<void(const ScannedRecord&)>& found, const EndOfGap& end_of_gap = {});

// Replaces `value` with that of the record at `offset`. Errors: DataLoss if there is no such record of `key`, or it is
// damaged; those of the disk. After an error `value` is unspecified.
Result<void> read_record(const DiskFile& file, std::uint64_t offset, std::uint64_t record_bytes, const Key& key,
                         std::vector<std::uint8_t>& value);

}  // namespace sluice::cache
