// A segment file: every record that is read from it lies in it with its checksum, and a store lives with the rest.
#include "src/base/checksum.h"
#include "src/base/testing/manual_clock.h"
#include "src/cache/fuzz/fuzz.h"
#include "src/cache/segment.h"
#include "src/cache/segment_names.h"
#include "src/cache/segment_store.h"
#include "src/cache/testing/memory_disk.h"

namespace sluice::cache::fuzz {
namespace {

using testing::Bytes;

struct Found {
  std::uint64_t offset;
  std::uint64_t bytes;
  Key key;
};

SegmentScan scan(const testing::MemoryFile& file, std::uint64_t bytes, std::vector<Found>& found) {
  return scan_segment(file, bytes, {}, [&](const ScannedRecord& record) {
    found.push_back({record.offset, record.bytes, {std::string(record.place), std::string(record.version)}});
  });
}

void check_scan(const Bytes& input) {
  const testing::MemoryFile file(std::make_shared<testing::DiskContent>(), std::make_shared<Bytes>(input));
  std::vector<Found> found, again;
  const SegmentScan whole = scan(file, input.size(), found);
  FUZZ_CHECK(whole.good_bytes <= input.size());
  FUZZ_CHECK(whole.end != SegmentScan::End::kFailed && whole.end != SegmentScan::End::kStopped);
  if (whole.end == SegmentScan::End::kComplete) FUZZ_CHECK(whole.good_bytes == input.size());
  Bytes value;
  for (const Found& record : found) {
    FUZZ_CHECK(record.offset + record.bytes <= input.size());
    if (!read_record(file, record.offset, record.bytes, record.key, value).ok()) continue;
    const auto end = input.begin() + static_cast<std::ptrdiff_t>(record.offset + record.bytes);
    FUZZ_CHECK(std::equal(value.begin(), value.end(), end - static_cast<std::ptrdiff_t>(value.size())));
  }
  if (whole.good_bytes == 0) return;
  // What is left after cutting off the rest is a good segment.
  FUZZ_CHECK(scan(file, whole.good_bytes, again).end == SegmentScan::End::kComplete);
  FUZZ_CHECK(again.size() == found.size());
}

void check_store(const Bytes& input) {
  constexpr std::uint64_t kBound = 1 << 20;
  const auto disk = std::make_shared<testing::DiskContent>();
  disk->files[segment_name(1)] = std::make_shared<Bytes>(input);
  const sluice::testing::ManualClock clock;
  const Key key{"fuzz", "1"};
  const Bytes expected{1, 2, 3};
  for (int process = 0; process < 2; ++process) {
    Counters counters;
    auto store = SegmentStore::open(std::make_unique<testing::MemoryDisk>(disk), {.bytes = kBound}, clock, counters);
    FUZZ_CHECK(store.ok());
    Bytes value;
    if (process == 0) (*store)->add(key, expected);
    FUZZ_CHECK((*store)->find(key, value) && value == expected);
    FUZZ_CHECK(disk->bytes() <= kBound);
    if (process == 1) FUZZ_CHECK(counters.damaged == 0);  // it was mended
  }
}

}  // namespace

void segment(std::string_view input) {
  const Bytes bytes(input.begin(), input.end());
  check_scan(bytes);
  check_store(bytes);
}

}  // namespace sluice::cache::fuzz
