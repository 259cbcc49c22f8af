#include "src/cache/segment.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/cache/checksum.h"

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

// Reads the heads of records into one buffer.
class HeadReader {
 public:
  explicit HeadReader(const DiskFile& file) : file_(file) {}

  // The head of the record at `offset`; it is valid until the next call. Errors: DataLoss if there is none.
  Result<std::span<const std::uint8_t>> read(std::uint64_t offset, std::uint64_t end) {
    if (end - offset < kFixedHeadBytes) return damaged();
    buffer_.resize(std::min<std::uint64_t>(kReadAheadBytes, end - offset));
    SLUICE_TRY_VOID(read_all(file_, offset, buffer_));
    const auto bytes = head_bytes(std::span(buffer_).first(kFixedHeadBytes));
    if (!bytes || *bytes > end - offset) return damaged();
    const std::size_t have = std::min(buffer_.size(), *bytes);
    buffer_.resize(*bytes);
    SLUICE_TRY_VOID(read_all(file_, offset + have, std::span(buffer_).subspan(have)));
    return std::span<const std::uint8_t>(buffer_);
  }

 private:
  const DiskFile& file_;
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
                         const std::function<void(const ScannedRecord&)>& found) {
  std::vector<std::uint8_t> head(kSegmentHeadBytes);
  if (const auto read = read_all(file, 0, head); !read.ok()) return {end_of(read.error()), 0};
  if (const std::uint32_t version = version_in(head); head != segment_head(version)) {
    return {SegmentScan::End::kDamaged, 0};
  } else if (version != kFormatVersion) {
    return {SegmentScan::End::kOtherVersion, 0};
  }
  HeadReader heads(file);
  SegmentScan scan{SegmentScan::End::kComplete, kSegmentHeadBytes};
  while (scan.good_bytes < file_bytes) {
    if (stop.stop_requested()) return {SegmentScan::End::kStopped, scan.good_bytes};
    const auto bytes = heads.read(scan.good_bytes, file_bytes);
    if (!bytes.ok()) return {end_of(bytes.error()), scan.good_bytes};
    const auto record = decode_head(*bytes);
    if (!record || record->value_bytes > file_bytes - scan.good_bytes - bytes->size()) {
      return {SegmentScan::End::kDamaged, scan.good_bytes};
    }
    const std::uint64_t record_bytes = bytes->size() + record->value_bytes;
    found({scan.good_bytes, record_bytes, record->place, record->version});
    scan.good_bytes += record_bytes;
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
