#include "src/cache/segment.h"

#include "src/base/testing/catch.h"
#include "src/cache/segment_names.h"
#include "src/cache/testing/memory_disk.h"

namespace sluice::cache {
namespace {

using testing::Bytes;

struct SegmentFile {
  std::shared_ptr<testing::DiskContent> disk = std::make_shared<testing::DiskContent>();
  std::shared_ptr<Bytes> bytes = std::make_shared<Bytes>(segment_head());
  testing::MemoryFile file{disk, bytes};

  void add(const Key& key, const Bytes& value) {
    const auto head = encode_head(key, value);
    bytes->insert(bytes->end(), head.begin(), head.end());
    bytes->insert(bytes->end(), value.begin(), value.end());
  }
  SegmentScan scan() {
    records.clear();
    return scan_segment(file, bytes->size(), {}, [&](const ScannedRecord& record) {
      records.push_back({record.offset, record.bytes, {std::string(record.place), std::string(record.version)}});
    });
  }

  struct Found {
    std::uint64_t offset;
    std::uint64_t bytes;
    Key key;
  };
  std::vector<Found> records;
};

using End = SegmentScan::End;

TEST_CASE("a scan finds the records of a segment, also those with long keys, and reads give their values") {
  SegmentFile segment;
  const Key keys[] = {{"a", "1"}, {std::string(kPlaceBytesMax, 'p'), std::string(kVersionBytesMax, 'v')}, {"", ""}};
  const Bytes values[] = {{1, 2, 3}, Bytes(100'000, 7), {}};
  for (std::size_t i = 0; i < 3; ++i) segment.add(keys[i], values[i]);
  const auto scan = segment.scan();
  CHECK(scan.end == End::kComplete);
  CHECK(scan.good_bytes == segment.bytes->size());
  REQUIRE(segment.records.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& found = segment.records[i];
    CHECK(found.key.place == keys[i].place);
    CHECK(found.key.version == keys[i].version);
    Bytes value(5);
    REQUIRE(read_record(segment.file, found.offset, found.bytes, keys[i], value).ok());
    CHECK(value == values[i]);
  }
}

TEST_CASE("another key, another place in the file or another length reads nothing") {
  SegmentFile segment;
  segment.add({"a", "1"}, {1, 2, 3});
  segment.scan();
  const auto [offset, bytes, key] = segment.records[0];
  Bytes value;
  struct Case {
    std::uint64_t offset;
    std::uint64_t bytes;
    Key key;
  };
  const Case cases[] = {{offset, bytes, {"b", "1"}},
                        {offset, bytes, {"a", "2"}},
                        {offset, bytes, {"a1", ""}},
                        {offset + 1, bytes, key},
                        {offset, bytes - 1, key},
                        {offset, bytes + 1, key},
                        {offset, 3, key},
                        {offset + 1000, bytes, key},
                        {offset, std::uint64_t{1} << 40, key}};
  for (const Case& c : cases) {
    const auto read = read_record(segment.file, c.offset, c.bytes, c.key, value);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code() == ErrorCode::kDataLoss);
  }
  segment.disk->refuses_reads = true;
  const auto refused = read_record(segment.file, offset, bytes, key, value);
  CHECK(refused.error().message() == "read: Input/output error");
  CHECK(segment.scan().end == End::kFailed);
}

TEST_CASE("heads of segments: cut, of another version, of something else") {
  SegmentFile segment;
  *segment.bytes = segment_head(kFormatVersion + 1);
  CHECK(segment.scan().end == End::kOtherVersion);
  *segment.bytes = segment_head(kFormatVersion - 1);
  CHECK(segment.scan().end == End::kOtherVersion);
  (*segment.bytes)[0] ^= 1;
  CHECK(segment.scan().end == End::kDamaged);
  *segment.bytes = segment_head();
  CHECK(segment.scan().end == End::kComplete);
  segment.bytes->resize(kSegmentHeadBytes - 1);
  CHECK(segment.scan().end == End::kDamaged);
  segment.bytes->clear();
  CHECK(segment.scan().end == End::kDamaged);
}

TEST_CASE("a scan ends when it is told to") {
  SegmentFile segment;
  segment.add({"a", "1"}, {1, 2, 3});
  std::stop_source stop;
  stop.request_stop();
  const auto scan = scan_segment(segment.file, segment.bytes->size(), stop.get_token(), [](const ScannedRecord&) {});
  CHECK(scan.end == End::kStopped);
}

TEST_CASE("only our own names are names of segments") {
  for (const std::uint32_t number : {1U, 42U, 0xFFFFFFFFU}) CHECK(segment_number(segment_name(number)) == number);
  for (const char* name : {"", "sluice-", "sluice-1.segment", "sluice-0000002A.segment", "sluice-00000000.segment",
                           "sluice-00000001.segment~", "sluice-cache.lock", "data", "sluice-100000001.segment"}) {
    INFO(name);
    CHECK_FALSE(segment_number(name));
  }
}

}  // namespace
}  // namespace sluice::cache
