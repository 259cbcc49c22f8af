// Damaged, full and failing disks, and processes that end in the middle of a write.
#include <random>

#include "src/base/testing/catch.h"
#include "src/cache/segment_store.h"
#include "src/cache/testing/store_fixture.h"

namespace sluice::cache {
namespace {

using testing::DiskContent;
using testing::key_of;
using testing::StoreFixture;
using Answer = StoreFixture::Answer;

constexpr Limits kLimits{.bytes = 1 << 20, .segment_bytes = 8 << 10};
constexpr int kRecords = 3;
constexpr std::size_t kSmallBytes = 90;

// The bytes of a segment with kRecords records.
testing::Bytes small_segment() {
  StoreFixture cache;
  REQUIRE(cache.open(kLimits).ok());
  for (int i = 0; i < kRecords; ++i) cache.add(key_of(i), kSmallBytes);
  REQUIRE(cache.disk->files.size() == 1);
  return *cache.disk->files.begin()->second;
}

int count_right(const StoreFixture& cache) {
  int right = 0;
  for (int i = 0; i < kRecords; ++i) {
    const Answer answer = cache.ask(key_of(i), kSmallBytes);
    REQUIRE(answer != Answer::kWrong);
    right += answer == Answer::kRight ? 1 : 0;
  }
  return right;
}

// After whatever has happened the cache stores and finds again.
void check_that_it_works(const StoreFixture& cache) {
  for (int i = 0; i < kRecords; ++i) cache.add(key_of(i), kSmallBytes);
  CHECK(count_right(cache) == kRecords);
  CHECK(cache.counters->bytes_on_disk == cache.blocks_on_disk());
}

TEST_CASE("a flipped bit at any byte of a segment costs records and is counted, and gives no wrong byte") {
  const testing::Bytes good = small_segment();
  for (const bool while_open : {false, true}) {
    for (std::size_t at = 0; at < good.size(); ++at) {
      StoreFixture cache;
      const auto file = std::make_shared<testing::Bytes>(good);
      cache.disk->files["sluice-00000001.segment"] = file;
      if (while_open) REQUIRE(cache.open(kLimits).ok());
      (*file)[at] ^= static_cast<std::uint8_t>(1 << (at % 8));
      if (!while_open) REQUIRE(cache.open(kLimits).ok());
      INFO(at);
      const int right = count_right(cache);
      if (while_open && at < 16) {
        CHECK(right == kRecords);  // the file's head is not read again
        continue;
      }
      CHECK(right < kRecords);
      CHECK(cache.counters->damaged + cache.counters->other_versions == 1);
      check_that_it_works(cache);
    }
  }
}

TEST_CASE("a segment that was cut at any length keeps the records before") {
  const testing::Bytes good = small_segment();
  int fewest = kRecords;
  for (std::size_t length = 0; length <= good.size(); ++length) {
    StoreFixture cache;
    cache.disk->files["sluice-00000001.segment"] =
        std::make_shared<testing::Bytes>(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
    REQUIRE(cache.open(kLimits).ok());
    INFO(length);
    const int right = count_right(cache);
    CHECK(right >= static_cast<int>(length / (good.size() / kRecords + 16)));
    fewest = std::min(fewest, right);
    check_that_it_works(cache);
    REQUIRE(cache.open(kLimits).ok());
    CHECK(cache.counters->damaged == 0);  // the damage was cut off
  }
  CHECK(fewest == 0);
}

TEST_CASE("a process may end at any byte that it writes") {
  const std::size_t all = small_segment().size();
  for (std::size_t written = 0; written <= all; ++written) {
    StoreFixture cache;
    REQUIRE(cache.open(kLimits).ok());
    cache.disk->until_power_loss = written;
    for (int i = 0; i < kRecords; ++i) cache.add(key_of(i), kSmallBytes);
    count_right(cache);
    cache.disk->until_power_loss = DiskContent::kNoLimit;
    REQUIRE(cache.open(kLimits).ok());
    INFO(written);
    CHECK((count_right(cache) == kRecords) == (written == all));
    check_that_it_works(cache);
  }
}

// A crowded store, of which half of the first segments' records were evicted: numbers that are odd.
struct Evicted : StoreFixture {
  static constexpr int kAll = 30;
  static constexpr std::size_t kLarge = 900;
  static constexpr Limits kCrowded{.bytes = 55 << 10, .segment_bytes = 8 << 10};

  explicit Evicted(bool makes_holes = false) {
    disk->makes_holes = makes_holes;
    REQUIRE(open(kCrowded).ok());
    for (int i = 0; i < kAll; ++i) add(key_of(i), kLarge);
    std::vector<SegmentStore::Place> places;
    for (int i = 1; i < kAll / 2; i += 2) places.push_back(hash_of(key_of(i).place));
    store->evict(places);
    REQUIRE(store->is_crowded());
  }
  static bool is_evicted(int i) { return i % 2 == 1 && i < kAll / 2; }
  // What is not evicted is there, and what is found is right.
  void check_records() const {
    // A process that ended within the head of a gap has cut the segment off there.
    const bool is_cut = counters->damaged == 1;
    for (int i = 0; i < kAll; ++i) {
      const Answer answer = ask(key_of(i), kLarge);
      CHECK_FALSE(answer == Answer::kWrong);
      CHECK_FALSE((answer == Answer::kMiss && !is_evicted(i) && !is_cut));
    }
  }
};

TEST_CASE("a process may end at any byte of a rewriting: what was not evicted is there, and the bound holds") {
  const bool makes_holes = GENERATE(false, true);
  std::uint64_t all = 0;
  {
    Evicted cache(makes_holes);
    const std::uint64_t before = cache.blocks_on_disk();
    while (cache.store->rewrite_one(.8, {})) cache.check_records();
    all = cache.counters->rewritten_bytes;
    CHECK(all > 4 * Evicted::kLarge);
    CHECK(cache.blocks_on_disk() + 4 * Evicted::kLarge <= before);
  }
  for (std::uint64_t written = 0; written <= all + 16; written += written < 40 || written + 40 > all ? 1 : 31) {
    INFO(written);
    Evicted cache(makes_holes);
    cache.disk->until_power_loss = written;
    while (cache.store->rewrite_one(.8, {})) CHECK(cache.blocks_on_disk() <= Evicted::kCrowded.bytes);
    cache.check_records();
    cache.disk->until_power_loss = DiskContent::kNoLimit;
    REQUIRE(cache.open(Evicted::kCrowded).ok());
    cache.check_records();
    CHECK(cache.blocks_on_disk() <= Evicted::kCrowded.bytes);
    CHECK(cache.counters->bytes_on_disk == cache.blocks_on_disk());
  }
}

TEST_CASE("a segment that is damaged, or that the disk does not give, is rewritten without what cannot be read") {
  SECTION("damaged") {
    Evicted cache;
    auto& first = *cache.disk->files.begin()->second;
    first[first.size() / 2] ^= 4;
    while (cache.store->rewrite_one(.8, {})) {
    }
    CHECK(cache.counters->damaged == 1);
    CHECK_FALSE(cache.disk->files.contains("sluice-00000001.segment"));
    for (int i = 0; i < Evicted::kAll; ++i) CHECK(cache.ask(key_of(i), Evicted::kLarge) != Answer::kWrong);
  }
  SECTION("not given") {
    Evicted cache;
    cache.disk->refuses_reads = true;
    CHECK(cache.store->rewrite_one(.8, {}));
    cache.disk->refuses_reads = false;
    CHECK_FALSE(cache.disk->files.contains("sluice-00000001.segment"));
    CHECK(cache.has(key_of(Evicted::kAll - 1), Evicted::kLarge));
  }
  SECTION("full meanwhile") {
    Evicted cache;
    cache.disk->room = 1000;
    CHECK_FALSE(cache.store->rewrite_one(.8, {}));
    cache.check_records();
    CHECK_FALSE(cache.store->rewrite_one(.8, {}));  // it is left alone for a while
    cache.disk->room = DiskContent::kNoLimit;
    cache.clock.advance(SegmentStore::kPauseAfterFailure);
    CHECK(cache.store->rewrite_one(.8, {}));
    cache.check_records();
  }
}

TEST_CASE("a disk that is full at any byte is left alone for a minute, and used again when it has room") {
  const std::size_t all = small_segment().size();
  for (const bool truncates : {true, false}) {
    for (std::size_t room = 0; room < all; ++room) {
      StoreFixture cache;
      REQUIRE(cache.open(kLimits).ok());
      cache.disk->room = room;
      cache.disk->refuses_truncation = !truncates;
      for (int i = 0; i < kRecords; ++i) cache.add(key_of(i), kSmallBytes);
      INFO(room);
      const int right = count_right(cache);
      CHECK(right < kRecords);
      CHECK(cache.counters->write_errors == 1);
      CHECK(cache.counters->not_stored_failed == static_cast<std::uint64_t>(kRecords - right));
      cache.disk->room = DiskContent::kNoLimit;
      for (int i = 0; i < kRecords; ++i) cache.add(key_of(i), kSmallBytes);
      CHECK(count_right(cache) == right);
      cache.clock.advance(SegmentStore::kPauseAfterFailure);
      for (int i = 0; i < kRecords; ++i) cache.add(key_of(i), kSmallBytes);
      CHECK(count_right(cache) == kRecords);
      CHECK(cache.counters->bytes_on_disk >= cache.blocks_on_disk());
      if (truncates) CHECK(cache.disk->files.size() == 1);  // what was cut is written on
      REQUIRE(cache.open(kLimits).ok());
      CHECK(count_right(cache) == kRecords);
    }
  }
}

TEST_CASE("a disk that takes, gives or removes nothing is a cache without records, and its errors are counted") {
  StoreFixture cache;
  REQUIRE(cache.open(kLimits).ok());
  for (int i = 0; i < kRecords; ++i) cache.add(key_of(i), kSmallBytes);
  cache.disk->refuses_reads = true;
  CHECK(count_right(cache) == 0);
  CHECK(cache.counters->read_errors == kRecords);
  REQUIRE(cache.open(kLimits).ok());
  CHECK(count_right(cache) == 0);
  CHECK(cache.disk->files.size() == 1);  // it may be readable again
  cache.disk->refuses_reads = false;
  REQUIRE(cache.open(kLimits).ok());
  CHECK(count_right(cache) == kRecords);
  cache.disk->refuses_writes = cache.disk->refuses_removal = true;
  cache.add(key_of(9), kSmallBytes);
  CHECK_FALSE(cache.has(key_of(9), kSmallBytes));
  CHECK(count_right(cache) == kRecords);
  REQUIRE(cache.open({.bytes = 0}).ok());
  CHECK(cache.counters->bytes_on_disk == cache.blocks_on_disk());  // what cannot be removed counts
}

TEST_CASE("ten thousand restarts with crashes, damage and full disks: no wrong byte, and the bound holds",
          "[one thread]") {
  constexpr Limits kBound{.bytes = 64 << 10, .segment_bytes = 8 << 10};
  StoreFixture cache;
  std::mt19937 random(20261123);
  const auto below = [&](std::uint32_t bound) { return random() % bound; };
  std::uint64_t right = 0, wrong = 0, over = 0;
  for (int restart = 0; restart < 10'000; ++restart) {
    if (below(4) == 0) cache.disk->until_power_loss = below(3000);
    if (below(4) == 0) cache.disk->room = below(3000);
    REQUIRE(cache.open(kBound).ok());
    for (int i = 0; i < 12; ++i) {
      const Key key = key_of(static_cast<int>(below(150)), restart / 1000);
      const std::size_t bytes = std::hash<std::string>{}(key.place) % 700;
      const Answer answer = cache.ask(key, bytes);
      if (answer == Answer::kMiss) cache.add(key, bytes);
      right += answer == Answer::kRight ? 1 : 0;
      wrong += answer == Answer::kWrong ? 1 : 0;
      over += cache.blocks_on_disk() > kBound.bytes ? 1 : 0;
    }
    cache.disk->until_power_loss = cache.disk->room = DiskContent::kNoLimit;
    if (below(3) == 0 && !cache.disk->files.empty()) {
      auto file =
          std::next(cache.disk->files.begin(), below(static_cast<std::uint32_t>(cache.disk->files.size())))->second;
      if (!file->empty() && below(2) == 0) (*file)[random() % file->size()] ^= static_cast<std::uint8_t>(1 << below(8));
      if (!file->empty() && below(4) == 0) file->resize(random() % file->size());
    }
  }
  CHECK(wrong == 0);
  CHECK(over == 0);
  CHECK(right > 10'000);
}

}  // namespace
}  // namespace sluice::cache
