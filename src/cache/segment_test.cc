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

TEST_CASE("a gap is passed over, whatever is in it, unless its head is damaged or it ends behind the file") {
  SegmentFile segment;
  for (const char* place : {"a", "b", "c", "d"}) segment.add({place, "1"}, Bytes(100, 1));
  segment.scan();
  const auto second = segment.records[1], third = segment.records[2];
  const auto put_gap = [&](std::uint64_t bytes) {
    const auto head = encode_gap(bytes);
    const auto at = segment.bytes->begin() + static_cast<std::ptrdiff_t>(second.offset);
    std::fill_n(at, second.bytes + third.bytes, std::uint8_t{0});
    std::copy(head.begin(), head.end(), at);
  };
  put_gap(second.bytes + third.bytes);
  CHECK(segment.scan().end == End::kComplete);
  REQUIRE(segment.records.size() == 3);
  CHECK(segment.records[1].offset == second.offset);
  CHECK(segment.records[1].bytes == second.bytes + third.bytes);
  CHECK(segment.records[2].key.place == "d");
  // A gap that came meanwhile is known to who scans, and its zeros are not damage.
  put_gap(second.bytes);
  std::vector<std::string> places;
  const auto found = [&](const ScannedRecord& record) { places.emplace_back(record.place); };
  const auto end_of_gap = [&](std::uint64_t offset) {
    return offset == third.offset ? third.offset + third.bytes : offset;
  };
  CHECK(scan_segment(segment.file, segment.bytes->size(), {}, found, end_of_gap).end == End::kComplete);
  CHECK(places == std::vector<std::string>{"a", "", "d"});
  CHECK(segment.scan().good_bytes == third.offset);
  const std::uint64_t left = segment.bytes->size() - second.offset;
  for (const std::uint64_t bytes : {left + 1, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    put_gap(bytes);
    CHECK(segment.scan().good_bytes == second.offset);
  }
  for (std::size_t at = 0; at < kFixedHeadBytes; ++at) {
    put_gap(left);
    CHECK(segment.scan().end == End::kComplete);
    (*segment.bytes)[second.offset + at] ^= 1;
    INFO(at);
    CHECK(segment.scan().good_bytes == second.offset);
  }
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
