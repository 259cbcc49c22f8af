#include "src/pipeline/range_table.h"

#include <random>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::pipeline {
namespace {

using testing::Member;
using testing::object_table;
using testing::range_table;
using testing::Shard;

const std::vector<Member> kMembers{{512, 100, 1, -7}, {1024, 50, 0, INT64_MAX}, {4000, 96, 1, 3}, {2048, 0, 0, 0}};
const std::vector<Shard> kShards{{"/data/a.tar", 2048, 11}, {"/data/b.tar", 4096, -22}};

TEST_CASE("every sample of a table has its place, the state of its file, and its label") {
  const auto table = RangeTable::parse(range_table(kMembers, kShards), kMembers.size(), kShards.size());
  REQUIRE(table.ok());
  REQUIRE(table->size() == kMembers.size());
  for (std::size_t i = 0; i < kMembers.size(); ++i) {
    const FilePart part = table->part(i);
    const Shard& shard = kShards[kMembers[i].file];
    REQUIRE(part.range);
    CHECK(part.path == shard.path);
    CHECK(part.range->offset == kMembers[i].offset);
    CHECK(part.range->bytes == kMembers[i].bytes);
    CHECK(part.range->file_bytes == shard.bytes);
    CHECK(part.range->modified_ns == shard.modified_ns);
    CHECK(table->label(i) == kMembers[i].label);
  }
  CHECK(table->part(0).name() == "/data/b.tar at 512");
}

TEST_CASE("files of a table with ETags may be objects") {
  const auto environment = std::make_shared<const ObjectEnvironment>(ObjectEnvironment{{"AWS_REGION", "eu-1"}});
  const std::vector<Shard> shards{{"/data/a.tar", 2048, 11}, {"s3://b/k.tar", 4096, -22, "\"e\""}};
  const auto parse = [&](const std::vector<Shard>& of, std::string extra = "") {
    return RangeTable::parse_with_objects(object_table(kMembers, of) + extra, kMembers.size(), of.size(), environment);
  };
  const auto table = parse(shards);
  REQUIRE(table.ok());
  CHECK(table->has_objects());
  const FilePart object = table->part(0);
  CHECK(object.path == "s3://b/k.tar");
  CHECK(object.range->modified_ns == -22);
  REQUIRE(object.object);
  CHECK(object.object->etag == "\"e\"");
  CHECK(object.object->variable("AWS_REGION") == "eu-1");
  CHECK_FALSE(table->part(1).object);

  CHECK_THAT(parse({shards[0], {"s3://b/k", 4096, 0}}).error().message(),
             Catch::Contains("file 1 of the table of ranges is not absolute"));
  CHECK_THAT(parse({shards[0], {"/data/b", 4096, 0, "\"e\""}}).error().message(),
             Catch::Contains("is not a URL of an object"));
  CHECK_THAT(parse(shards, std::string(1, '\0')).error().message(), Catch::Contains("more names than files"));
  const std::string without = range_table(kMembers, shards);
  CHECK_THAT(RangeTable::parse_with_objects(without, kMembers.size(), 2, environment).error().message(),
             Catch::Contains("ETags for 0 of 2 files"));
  CHECK_THAT(RangeTable::parse(without, kMembers.size(), 2).error().message(), Catch::Contains("is not absolute"));
}

TEST_CASE("a table may have no samples, and no files") {
  CHECK(RangeTable::parse("", 0, 0).ok());
  CHECK(RangeTable::parse(range_table({}, kShards), 0, 2).ok());
}

TEST_CASE("a table of ranges whose parts do not fit each other is refused") {
  const std::string good = range_table(kMembers, kShards);
  const auto with = [](Member member, Shard shard = {"/data/a.tar", 2048, 11}) {
    return range_table({member}, {std::move(shard)});
  };
  const std::tuple<const char*, std::string, std::uint64_t, std::uint64_t, const char*> cases[] = {
      {"empty", "", 1, 1, "fewer than"},
      {"of absurdly many samples", good, std::uint64_t{1} << 63, 2, "fewer than"},
      {"of absurdly many files", good, 4, std::uint64_t{1} << 63, "fewer than"},
      {"a byte is missing", good.substr(0, good.size() - 1), 4, 2, "names for 1 of 2 files"},
      {"a byte too many", good + '\0', 4, 2, "more names than files"},
      {"a relative name", with({0, 1, 0, 0}, {"data/a.tar", 2048, 11}), 1, 1,
       "file 0 of the table of ranges is not abs"},
      {"an empty name", with({0, 1, 0, 0}, {"", 2048, 11}), 1, 1, "not absolute"},
      {"a file that is not there", with({0, 1, 1, 0}), 1, 1, "sample 0 of the table of ranges lies in file 1 of 1"},
      {"a length that lies", with({512, 1537, 0, 0}), 1, 1, "sample 0 of the table of ranges ends behind its file"},
      {"an offset that lies", with({2049, 0, 0, 0}), 1, 1, "ends behind its file"},
      {"an offset that wraps around", with({UINT64_MAX - 5, 100, 0, 0}), 1, 1, "ends behind its file"},
  };
  for (const auto& [name, bytes, samples, files, want] : cases) {
    CAPTURE(name);
    const auto table = RangeTable::parse(bytes, samples, files);
    REQUIRE_FALSE(table.ok());
    CHECK(table.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(table.error().message(), Catch::Contains(want));
  }
}

TEST_CASE("whatever the bytes of a table of ranges are, it is refused or its samples lie within their files") {
  std::mt19937 random(7);
  const std::string good = range_table(kMembers, kShards);
  int readable = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto table = RangeTable::parse(std::move(bytes), kMembers.size(), kShards.size());
    if (!table.ok()) continue;
    ++readable;
    for (std::size_t i = 0; i < table->size(); ++i) {
      const FilePart part = table->part(i);
      REQUIRE(part.range->offset + part.range->bytes <= part.range->file_bytes);
    }
  }
  CHECK(readable > 0);
}

}  // namespace
}  // namespace sluice::pipeline
