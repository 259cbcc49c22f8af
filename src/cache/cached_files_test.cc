#include "src/cache/cached_files.h"

#include "src/base/testing/catch.h"
#include "src/cache/testing/cached_files_fixture.h"
#include "src/cache/testing/store_fixture.h"
#include "src/pipeline/pipeline_files.h"

namespace sluice::cache {
namespace {

using testing::Bytes;

constexpr int kFiles = 40;
constexpr std::size_t kFileBytes = 5000;

std::string plain_path(int i) { return "/data/" + std::to_string(i) + ".jpg"; }
Bytes content_of(int i, int version = 1) { return testing::value_of(testing::key_of(i, version), kFileBytes); }

struct SlowFiles : testing::CachedFilesFixture {
  SlowFiles() {
    for (int i = 0; i < kFiles; ++i) source->write(plain_path(i), content_of(i));
    clock.advance(std::chrono::hours(1));
    start(Keep::kSource);
  }
  // Reads every file and compares; the number of reads of the source.
  int epoch(int version = 1) const {
    const int before = source->reads;
    Bytes bytes;
    for (int i = 0; i < kFiles; ++i) {
      REQUIRE(files->read(plain_path(i), bytes).ok());
      CHECK(bytes == content_of(i, version));
    }
    return source->reads - before;
  }
};

TEST_CASE("the second epoch reads nothing from a slow source, nor does the next process") {
  SlowFiles cache;
  CHECK(cache.epoch() == kFiles);
  CHECK(cache.epoch() == 0);
  CHECK(cache.files->counters().hits() == kFiles);
  CHECK(cache.files->counters().misses == kFiles);
  CHECK(cache.files->counters().hit_bytes() == kFiles * kFileBytes);
  cache.start(Keep::kSource);
  CHECK(cache.epoch() == 0);
}

TEST_CASE("files of another name space are not given out") {
  SlowFiles cache;
  cache.epoch();
  cache.start(Keep::kSource, {.bytes = 10 << 20}, "other");
  CHECK(cache.epoch() == kFiles);
}

TEST_CASE("objects are kept by their place and ETag, however fast their read was, and their store is not asked again") {
  SlowFiles cache;
  cache.source->takes = std::chrono::nanoseconds(0);
  const std::string url = "https://store/k.tar?X-Amz-Signature=";
  for (const char* signature : {"a", "b"}) cache.source->write(url + signature, content_of(1));
  const auto part = [&](const char* signature, const char* etag = "\"e\"", std::uint64_t offset = 0) {
    const auto state = *cache.source->identify(url + signature);
    cache.source->write(url + signature, content_of(1));  // a moment ago: an ETag needs no time to settle
    const auto now = *cache.source->identify(url + signature);
    return pipeline::FilePart(url + signature, {offset, 100, state.bytes, now.modified_ns}, {etag, nullptr});
  };
  const auto reads = [&](const pipeline::FilePart& wanted) {
    const int before = cache.source->reads;
    cache.source->ahead.clear();
    CHECK(cache.files->read_ahead([&](std::size_t) { return wanted; }, 1, {}) == nullptr);
    Bytes bytes;
    REQUIRE(cache.files->read(wanted, bytes).ok());
    CHECK(bytes.size() == 100);
    const int count = cache.source->reads - before;
    CHECK(cache.source->ahead.size() == static_cast<std::size_t>(count));  // what was not kept, and nothing else
    return count;
  };
  CHECK(reads(part("a")) == 1);
  CHECK(reads(part("a")) == 0);
  CHECK(reads(part("b")) == 0);  // presigned anew
  CHECK(reads(part("b", "\"e\"", 100)) == 1);
  CHECK(reads(part("b", "\"f\"")) == 0);  // the digest tells the states apart
  cache.start(Keep::kSource);
  CHECK(reads(part("a")) == 0);
  for (int time = 0; time < 2; ++time) CHECK(reads(part("a", "W/\"e\"")) == 1);  // a weak ETag names no content
  cache.clock.advance(std::chrono::seconds(1));
  CHECK(reads(part("a")) == 1);  // another digest
}

TEST_CASE("a pipeline that chooses its form reads ahead what it does not have") {
  SlowFiles cache;
  cache.source->write("s3://b/k", content_of(1));
  const auto state = *cache.source->identify("s3://b/k");
  const pipeline::FilePart part("s3://b/k", {0, 100, state.bytes, state.modified_ns}, {"\"e\"", nullptr});
  cache.start(Keep::kAutomatic);
  const auto own = cache.files->for_pipeline(10);
  const auto ahead = [&] {
    cache.source->ahead.clear();
    own->read_ahead([&](std::size_t) { return part; }, 1, {});
    return cache.source->ahead.size();
  };
  CHECK(ahead() == 1);
  Bytes bytes;
  REQUIRE(own->read_image(part, {}, bytes).ok());
  CHECK(ahead() == 0);
}

TEST_CASE("ranges of a file are cached, each for itself") {
  SlowFiles cache;
  const auto part = [&](std::uint64_t offset, std::uint64_t bytes) {
    const auto identity = *cache.source->identify(plain_path(0));
    return pipeline::FilePart(plain_path(0), {offset, bytes, identity.bytes, identity.modified_ns});
  };
  const Bytes whole = content_of(0);
  for (const int reads : {4, 0}) {
    const int before = cache.source->reads;
    for (const auto& [offset, length] : {std::pair{0, 100}, std::pair{0, 101}, std::pair{100, 100}}) {
      Bytes bytes;
      REQUIRE(
          cache.files->read(part(static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length)), bytes).ok());
      CHECK(bytes == Bytes(whole.begin() + offset, whole.begin() + offset + length));
    }
    Bytes bytes;
    REQUIRE(cache.files->read(plain_path(0), bytes).ok());
    CHECK(bytes == whole);
    CHECK(cache.source->reads - before == reads);
  }
}

TEST_CASE("a cached range of a file that has changed since is not given out") {
  SlowFiles cache;
  const auto identity = *cache.source->identify(plain_path(0));
  const pipeline::FilePart part(plain_path(0), {8, 100, identity.bytes, identity.modified_ns});
  Bytes bytes;
  REQUIRE(cache.files->read(part, bytes).ok());
  cache.source->write(plain_path(0), content_of(0, 2));
  cache.clock.advance(CachedFiles::kSettled);
  const auto now = *cache.source->identify(plain_path(0));
  REQUIRE(
      cache.files->read({plain_path(0), {8, 100, now.bytes, now.modified_ns}}, bytes).ok());  // cached by a newer index
  const auto refused = cache.files->read(part, bytes);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::kDataLoss);
}

TEST_CASE("only what took longer than a local disk takes is stored") {
  struct Case {
    std::chrono::nanoseconds takes;
    int second_epoch;
  };
  const auto limit = CachedFiles::kSlowRead + CachedFiles::kSlowReadPerByte * kFileBytes;
  for (const Case& c : {Case{limit, kFiles}, Case{limit + std::chrono::nanoseconds(1), 0}}) {
    SlowFiles cache;
    cache.source->takes = c.takes;
    CHECK(cache.epoch() == kFiles);
    CHECK(cache.epoch() == c.second_epoch);
    CHECK(cache.files->counters().not_stored_fast == static_cast<std::uint64_t>(2 * c.second_epoch));
  }
}

TEST_CASE("a file that has changed is read anew, and then from the cache") {
  SlowFiles cache;
  cache.epoch();
  for (int i = 0; i < kFiles; ++i) cache.source->write(plain_path(i), content_of(i, 2));
  CHECK(cache.epoch(2) == kFiles);
  cache.clock.advance(CachedFiles::kSettled);
  CHECK(cache.epoch(2) == kFiles);  // only now it is sure that no change is left to come
  CHECK(cache.epoch(2) == 0);
}

TEST_CASE("a file that has changed within the last seconds is not stored") {
  SlowFiles cache;
  cache.source->takes = std::chrono::milliseconds(2);
  cache.epoch();
  cache.source->write(plain_path(0), content_of(0));
  CHECK(cache.epoch() == 1);
  CHECK(cache.epoch() == 1);
  cache.clock.advance(CachedFiles::kSettled);
  CHECK(cache.epoch() == 1);
  CHECK(cache.epoch() == 0);
  CHECK(cache.files->counters().not_stored_changing == 2);
}

TEST_CASE("a file that changes between the look at it and its reading is not stored, even if the change is undone") {
  SlowFiles cache;
  const auto before = cache.source->snapshot();
  cache.source->while_reading = [&] { cache.source->write(plain_path(1), content_of(1, 2)); };
  Bytes bytes;
  REQUIRE(cache.files->read(plain_path(1), bytes).ok());
  CHECK(bytes == content_of(1, 2));
  CHECK(cache.files->counters().not_stored_changing == 1);
  cache.source->while_reading = nullptr;
  cache.source->go_back_to(before);
  REQUIRE(cache.files->read(plain_path(1), bytes).ok());
  CHECK(bytes == content_of(1));
}

TEST_CASE("a wall clock that jumps gives no wrong byte") {
  for (const auto jump : {std::chrono::hours(24 * 365), std::chrono::hours(-24 * 365)}) {
    SlowFiles cache;
    cache.epoch();
    cache.clock.jump_wall(jump);
    CHECK(cache.epoch() == 0);
    for (int i = 0; i < kFiles; ++i) cache.source->write(plain_path(i), content_of(i, 2));
    cache.epoch(2);
    cache.clock.jump_wall(-jump);
    cache.epoch(2);
    cache.epoch(2);
  }
}

TEST_CASE("errors are the source's own") {
  SlowFiles cache;
  Bytes bytes;
  const auto missing = cache.files->read(std::string("/data/missing.jpg"), bytes);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message() == "open /data/missing.jpg");
  CHECK_FALSE(cache.files->identify("/data/missing.jpg").ok());
  CHECK(*cache.files->identify(plain_path(0)) == *cache.source->identify(plain_path(0)));
}

TEST_CASE("bytes are the same with a cache that is full, damaged, on a full disk, or in use elsewhere") {
  SlowFiles cache;
  SECTION("full") {
    cache.start(Keep::kSource, {.bytes = 20 * kFileBytes});
    CHECK(cache.epoch() == kFiles);
    const int reads = cache.epoch();
    CHECK(reads > 0);
    CHECK(reads < kFiles);
    CHECK(cache.epoch() == reads);
  }
  SECTION("damaged") {
    cache.epoch();
    auto& bytes = *cache.disk->files.begin()->second;
    for (std::size_t at = 100; at < bytes.size(); at += 10'000) bytes[at] ^= 4;
    CHECK(cache.epoch() > 0);
    CHECK(cache.epoch() == 0);
    CHECK(cache.files->counters().damaged > 0);
  }
  SECTION("a full disk") {
    cache.disk->room = 12'345;
    CHECK(cache.epoch() == kFiles);
    CHECK(cache.epoch() > kFiles / 2);
    CHECK(cache.files->counters().write_errors > 0);
  }
  SECTION("in use elsewhere") {
    const CachedFiles second(
        cache.source, store_on(std::make_unique<testing::MemoryDisk>(cache.disk), {.bytes = 1 << 20}, cache.clock),
        "team", cache.clock);
    CHECK_FALSE(second.wait_until_opened());
    Bytes bytes;
    REQUIRE(second.read(plain_path(3), bytes).ok());
    CHECK(bytes == content_of(3));
    CHECK(second.counters().misses == 0);
  }
}

}  // namespace
}  // namespace sluice::cache
