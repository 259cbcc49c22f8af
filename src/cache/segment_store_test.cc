#include "src/cache/segment_store.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/cache/segment.h"
#include "src/cache/segment_names.h"
#include "src/cache/testing/store_fixture.h"

namespace sluice::cache {
namespace {

using testing::key_of;
using testing::StoreFixture;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr Limits kSmall{.bytes = 10 * kMiB, .segment_bytes = 64 << 10};
constexpr std::size_t kStoredBytes = 1000;

TEST_CASE("what was added is found, also by the next process") {
  StoreFixture cache;
  REQUIRE(cache.open(kSmall).ok());
  CHECK_FALSE(cache.has(key_of(1), kStoredBytes));
  for (int i = 0; i < 200; ++i) cache.add(key_of(i), kStoredBytes);
  for (int process = 0; process < 3; ++process) {
    for (int i = 0; i < 200; ++i) CHECK(cache.has(key_of(i), kStoredBytes));
    CHECK_FALSE(cache.has(key_of(200), kStoredBytes));
    CHECK(cache.counters->records == 200);
    CHECK(cache.counters->bytes_on_disk == cache.blocks_on_disk());
    CHECK(cache.disk->files.size() > 3);
    REQUIRE(cache.open(kSmall).ok());
  }
  CHECK(cache.counters->damaged == 0);
}

TEST_CASE("a record that is added again takes no more room") {
  StoreFixture cache;
  REQUIRE(cache.open(kSmall).ok());
  for (int i = 0; i < 100; ++i) cache.add(key_of(1), kStoredBytes);
  CHECK(cache.disk->bytes() < 2 * kStoredBytes);
}

TEST_CASE("processes that end early go on in the same segment, so that restarts make no files") {
  StoreFixture cache;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(cache.open(kSmall).ok());
    cache.add(key_of(i), kStoredBytes);
  }
  CHECK(cache.disk->files.size() == 1);
  for (int i = 0; i < 20; ++i) CHECK(cache.has(key_of(i), kStoredBytes));
}

TEST_CASE("a full cache keeps what it has: hits are the share that fits, whatever the order of the epochs") {
  StoreFixture cache;
  constexpr int kSamples = 4000;
  constexpr std::uint64_t kBound = 2 * kMiB;
  REQUIRE(cache.open({.bytes = kBound, .segment_bytes = 256 << 10}).ok());
  std::mt19937 random(7);
  std::vector<int> order(kSamples);
  std::iota(order.begin(), order.end(), 0);
  std::vector<int> hits;
  for (int epoch = 0; epoch < 6; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    hits.push_back(0);
    for (const int i : order) {
      const auto answer = cache.ask(key_of(i), kStoredBytes);
      REQUIRE(answer != StoreFixture::Answer::kWrong);
      if (answer == StoreFixture::Answer::kRight) {
        ++hits.back();
      } else {
        cache.add(key_of(i), kStoredBytes);
      }
      REQUIRE(cache.blocks_on_disk() <= kBound);
    }
  }
  CHECK(hits[0] == 0);
  CHECK(hits[1] > 0.95 * kBound / (kStoredBytes + 60));  // a record has less than 60 bytes beside its value
  for (std::size_t epoch = 2; epoch < hits.size(); ++epoch) CHECK(hits[epoch] == hits[1]);
  CHECK(cache.counters->not_stored_full > 0);
}

TEST_CASE("segments whose records have all changed at the source are removed whole") {
  StoreFixture cache;
  REQUIRE(cache.open({.bytes = 256 << 10, .segment_bytes = 16 << 10}).ok());
  for (int version = 1; version < 10; ++version) {
    for (int i = 0; i < 100; ++i) {
      CHECK_FALSE(cache.has(key_of(i, version), kStoredBytes));
      cache.add(key_of(i, version), kStoredBytes);
    }
    for (int i = 0; i < 100; ++i) CHECK(cache.has(key_of(i, version), kStoredBytes));
    CHECK(cache.disk->bytes() < 3 * 100 * kStoredBytes);
  }
  for (int i = 0; i < 100; ++i) CHECK_FALSE(cache.has(key_of(i, 8), kStoredBytes));
}

TEST_CASE("segments of an earlier process that this one has no use for make room, others do not") {
  StoreFixture cache;
  const Limits limits{.bytes = 256 << 10, .segment_bytes = 16 << 10};
  REQUIRE(cache.open(limits).ok());
  for (int i = 0; i < 300; ++i) cache.add(key_of(i), kStoredBytes);
  REQUIRE(cache.open(limits).ok());
  CHECK(cache.has(key_of(0), kStoredBytes));  // its segment is in use
  const std::uint64_t before = cache.counters->records;
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (int i = 1000; i < 1150; ++i) {
      if (!cache.has(key_of(i), kStoredBytes)) cache.add(key_of(i), kStoredBytes);
    }
    if (epoch == 0) CHECK(cache.counters->records == before);  // it may yet be read
  }
  for (int i = 1000; i < 1150; ++i) CHECK(cache.has(key_of(i), kStoredBytes));
  CHECK(cache.has(key_of(0), kStoredBytes));
  CHECK_FALSE(cache.has(key_of(100), kStoredBytes));
}

TEST_CASE("a smaller bound holds from the start on, and takes the oldest segments away") {
  StoreFixture cache;
  REQUIRE(cache.open(kSmall).ok());
  for (int i = 0; i < 500; ++i) cache.add(key_of(i), kStoredBytes);
  for (const std::uint64_t bytes : {400 << 10, 100 << 10, 0}) {
    REQUIRE(cache.open({.bytes = bytes, .segment_bytes = 64 << 10}).ok());
    CHECK(cache.blocks_on_disk() <= bytes);
    CHECK(cache.has(key_of(499), kStoredBytes) == (bytes > 0));
    CHECK_FALSE(cache.has(key_of(0), kStoredBytes));
  }
}

TEST_CASE("the index has a bound of its own") {
  StoreFixture cache;
  Limits limits = kSmall;
  limits.records = 10;
  REQUIRE(cache.open(kSmall).ok());
  for (int i = 0; i < 30; ++i) cache.add(key_of(i), kStoredBytes);
  for (int process = 0; process < 2; ++process) {
    REQUIRE(cache.open(limits).ok());
    CHECK(cache.counters->records == 10);
    cache.add(key_of(100), kStoredBytes);
    CHECK(cache.counters->records == 10);
    CHECK(cache.counters->not_stored_full == 1);
  }
}

TEST_CASE("segments of an older and of a newer version are counted and removed, other files are left alone") {
  StoreFixture cache;
  const auto put = [&](const std::string& name, testing::Bytes bytes) {
    cache.disk->files[name] = std::make_shared<testing::Bytes>(std::move(bytes));
  };
  put(segment_name(3), segment_head(kFormatVersion + 1));
  put(segment_name(4), segment_head(kFormatVersion - 1));
  put(segment_name(0xFFFFFFFF), {'x'});
  put("notes.txt", {'x'});
  REQUIRE(cache.open(kSmall).ok());
  CHECK(cache.counters->other_versions == 2);
  CHECK(cache.counters->damaged == 1);
  CHECK(cache.disk->files.size() == 1);
  cache.add(key_of(1), kStoredBytes);
  CHECK(cache.has(key_of(1), kStoredBytes));
  CHECK(cache.disk->files.contains("notes.txt"));
}

TEST_CASE("the highest possible number of a segment does not end the numbers") {
  StoreFixture cache;
  REQUIRE(cache.open(kSmall).ok());
  cache.add(key_of(1), 100'000);
  cache.disk->files[segment_name(0xFFFFFFFF)] = cache.disk->files.at(segment_name(1));
  REQUIRE(cache.open(kSmall).ok());
  cache.add(key_of(2), 100'000);
  cache.add(key_of(3), 100'000);
  for (int i = 1; i < 4; ++i) CHECK(cache.has(key_of(i), 100'000));
}

TEST_CASE("a second process on the directory is told so, and the first goes on") {
  StoreFixture first;
  REQUIRE(first.open(kSmall).ok());
  StoreFixture second;
  second.disk = first.disk;
  const auto refused = second.open(kSmall);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::kUnavailable);
  first.add(key_of(1), kStoredBytes);
  CHECK(first.has(key_of(1), kStoredBytes));
  first.store.reset();
  REQUIRE(second.open(kSmall).ok());
  CHECK(second.has(key_of(1), kStoredBytes));
}

TEST_CASE("threads that find and add at the same time see right bytes only") {
  StoreFixture cache;
  REQUIRE(cache.open({.bytes = 512 << 10, .segment_bytes = 16 << 10}).ok());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(static_cast<std::uint32_t>(thread));
      for (int i = 0; i < 2000; ++i) {
        const Key key = key_of(static_cast<int>(random() % 200), 1 + i / 500);
        const auto answer = cache.ask(key, kStoredBytes);
        if (answer == StoreFixture::Answer::kMiss) cache.add(key, kStoredBytes);
        if (answer == StoreFixture::Answer::kWrong) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.counters->damaged == 0);
  CHECK(cache.counters->bytes_on_disk == cache.blocks_on_disk());
}

}  // namespace
}  // namespace sluice::cache
