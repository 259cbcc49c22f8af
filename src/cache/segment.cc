#include "src/cache/segment.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "src/base/checksum.h"

namespace sluice::cache {
namespace {

constexpr char kSegmentMagic[8] = {'S', 'l', 'u', 'i', 'c', 'e', 'C', 'a'};
constexpr std::size_t kReadAheadBytes = 512;  // the head of most records

std::uint32_t version_in(std::span<const std::uint8_t> head) {
  std::uint32_t version = 0;
  std::memcpy(&version, head.data() + sizeof(kSegmentMagic), sizeof(version));
  return version;
}

// All that was asked for, or DataLoss.
Result<void> read_all(const DiskFile& file, std::uint64_t offset, std::span<std::uint8_t> bytes) {
  SLUICE_TRY(const std::size_t got, file.read_at(offset, bytes));
  if (got < bytes.size()) return Error(ErrorCode::kDataLoss, "the segment ends within a record");
  return {};
}

Error damaged() { return {ErrorCode::kDataLoss, "the record is damaged"}; }

// Reads the heads of records and gaps into one buffer.
class HeadReader {
 public:
  HeadReader(const DiskFile& file, std::uint64_t file_bytes) : file_(file), file_bytes_(file_bytes) {}

  // What is at `offset`; its texts are valid until the next call. Errors: DataLoss if it is neither.
  Result<ScannedRecord> read(std::uint64_t offset) {
    const std::uint64_t left = file_bytes_ - offset;
    if (left < kFixedHeadBytes) return damaged();
    buffer_.resize(std::min<std::uint64_t>(kReadAheadBytes, left));
    SLUICE_TRY_VOID(read_all(file_, offset, buffer_));
    const auto fixed = std::span<const std::uint8_t>(buffer_).first(kFixedHeadBytes);
    if (const auto gap = gap_bytes(fixed)) {
      if (*gap > left) return damaged();
      return ScannedRecord{.offset = offset, .bytes = *gap, .is_gap = true};
    }
    const auto bytes = head_bytes(fixed);
    if (!bytes || *bytes > left) return damaged();
    const std::size_t have = std::min(buffer_.size(), *bytes);
    buffer_.resize(*bytes);
    SLUICE_TRY_VOID(read_all(file_, offset + have, std::span(buffer_).subspan(have)));
    const auto record = decode_head(buffer_);
    if (!record || record->value_bytes > left - *bytes) return damaged();
    return ScannedRecord{offset, *bytes + record->value_bytes, record->place, record->version};
  }

 private:
  const DiskFile& file_;
  const std::uint64_t file_bytes_;
  std::vector<std::uint8_t> buffer_;
};

SegmentScan::End end_of(const Error& error) {
  return error.code() == ErrorCode::kDataLoss ? SegmentScan::End::kDamaged : SegmentScan::End::kFailed;
}

}  // namespace

std::vector<std::uint8_t> segment_head(std::uint32_t version) {
  std::vector<std::uint8_t> head(kSegmentHeadBytes);
  std::memcpy(head.data(), kSegmentMagic, sizeof(kSegmentMagic));
  std::memcpy(head.data() + sizeof(kSegmentMagic), &version, sizeof(version));
  return head;
}

SegmentScan scan_segment(const DiskFile& file, std::uint64_t file_bytes, const std::stop_token& stop,
                         const std::function<void(const ScannedRecord&)>& found, const EndOfGap& end_of_gap) {
  std::vector<std::uint8_t> head(kSegmentHeadBytes);
  if (const auto read = read_all(file, 0, head); !read.ok()) return {end_of(read.error()), 0};
  if (const std::uint32_t version = version_in(head); head != segment_head(version)) {
    return {SegmentScan::End::kDamaged, 0};
  } else if (version != kFormatVersion) {
    return {SegmentScan::End::kOtherVersion, 0};
  }
  HeadReader heads(file, file_bytes);
  SegmentScan scan{SegmentScan::End::kComplete, kSegmentHeadBytes};
  const auto passes_a_gap = [&] {
    const std::uint64_t end = end_of_gap ? end_of_gap(scan.good_bytes) : scan.good_bytes;
    return std::exchange(scan.good_bytes, end) != end;
  };
  while (scan.good_bytes < file_bytes) {
    if (stop.stop_requested()) return {SegmentScan::End::kStopped, scan.good_bytes};
    if (passes_a_gap()) continue;
    const auto record = heads.read(scan.good_bytes);
    if (!record.ok()) {
      if (passes_a_gap()) continue;  // it went while its head was read
      return {end_of(record.error()), scan.good_bytes};
    }
    found(*record);
    scan.good_bytes += record->bytes;
  }
  return scan;
}

Result<void> read_record(const DiskFile& file, std::uint64_t offset, std::uint64_t record_bytes, const Key& key,
                         std::vector<std::uint8_t>& value) {
  const std::size_t expected_bytes = kFixedHeadBytes + key.place.size() + key.version.size();
  if (record_bytes < expected_bytes || record_bytes - expected_bytes > kValueBytesMax) return damaged();
  std::vector<std::uint8_t> head(expected_bytes);
  SLUICE_TRY_VOID(read_all(file, offset, head));
  if (head_bytes(std::span(head).first(kFixedHeadBytes)) != expected_bytes) return damaged();
  const auto record = decode_head(head);
  if (!record || record->place != key.place || record->version != key.version) return damaged();
  if (record->value_bytes != record_bytes - expected_bytes) return damaged();
  value.resize(record->value_bytes);
  SLUICE_TRY_VOID(read_all(file, offset + expected_bytes, value));
  if (checksum(value) != record->value_checksum) return damaged();
  return {};
}

}  // namespace sluice::cache
