#include "src/cache/memory_tier.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "src/base/checksum.h"
#include "src/base/testing/catch.h"
#include "src/cache/testing/store_fixture.h"

namespace sluice::cache {
namespace {

using testing::key_of;
using testing::value_of;

constexpr std::size_t kHeldBytes = 1000;
// Of one record: the value, the two copies of its place, its version and its index entry are at most so many.
constexpr std::uint64_t kRecordBytesMax = kHeldBytes + 300;

std::shared_ptr<const Value> shared_value(const Key& key, std::size_t bytes = kHeldBytes) {
  const auto value = value_of(key, bytes);
  return std::make_shared<const Value>(Value{value, checksum(value)});
}

void add(MemoryTier& tier, const Key& key, std::uint64_t records_known = 0) {
  tier.add(key, shared_value(key), records_known);
}

bool has(MemoryTier& tier, const Key& key) {
  const auto value = tier.find(key);
  if (value == nullptr) return false;
  CHECK(value->bytes == value_of(key, kHeldBytes));
  CHECK(value->checksum == checksum(value->bytes));
  return true;
}

TEST_CASE("memory gives what it was given, of one version at a time") {
  MemoryTier tier(1 << 20);
  CHECK_FALSE(has(tier, key_of(1)));
  add(tier, key_of(1));
  add(tier, key_of(1));
  CHECK(has(tier, key_of(1)));
  CHECK(tier.records() == 1);
  add(tier, key_of(1, 2));
  CHECK(has(tier, key_of(1, 2)));
  CHECK(tier.records() == 1);
  CHECK_FALSE(has(tier, key_of(1)));  // its source has changed once more
  CHECK(tier.records() == 0);
  CHECK(tier.bytes() == 0);
}

TEST_CASE("the bound holds, with keys and index; what is full keeps what it has") {
  constexpr std::uint64_t kBound = 100 * kRecordBytesMax;
  MemoryTier tier(kBound);
  for (int i = 0; i < 1000; ++i) {
    add(tier, key_of(i), 1000);
    CHECK(tier.bytes() <= kBound);
  }
  CHECK(tier.records() >= 100);
  for (int i = 0; i < 100; ++i) CHECK(has(tier, key_of(i)));
  CHECK_FALSE(has(tier, key_of(999)));
  MemoryTier none(0);
  add(none, key_of(1));
  CHECK(none.records() == 0);
}

TEST_CASE("epochs in new orders hit the share that fits, where the page cache's rule hits far less") {
  constexpr int kSamples = 2000;
  MemoryTier tier(kSamples / 2 * kRecordBytesMax);
  std::vector<int> order(kSamples);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(7);
  int hits = 0;
  for (int epoch = 0; epoch < 6; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    hits = 0;
    for (const int i : order) {
      if (has(tier, key_of(i)))
        ++hits;
      else
        add(tier, key_of(i), kSamples);
    }
  }
  CHECK(hits > 0.49 * kSamples);  // LRU: 15 %, docs/designs/cache.md
}

TEST_CASE("a data set that is used no more makes room for the next one") {
  constexpr int kSamples = 1000;
  MemoryTier tier(kSamples * kRecordBytesMax);
  for (int i = 0; i < 2 * kSamples; ++i) add(tier, key_of(i), kSamples);
  int hits = 0;
  for (int epoch = 0; epoch < 12; ++epoch) {
    hits = 0;
    for (int i = 0; i < kSamples; ++i) {
      const Key key = key_of(1'000'000 + i);
      if (has(tier, key))
        ++hits;
      else
        add(tier, key, kSamples);
      CHECK(tier.bytes() <= kSamples * kRecordBytesMax);
    }
  }
  CHECK(hits > kSamples - static_cast<int>(MemoryTier::kGroupRecords));  // one group has records of both
}

TEST_CASE("memory that has changed by itself is forgotten when the record comes anew") {
  MemoryTier tier(1 << 20);
  const auto damaged = std::make_shared<Value>(*shared_value(key_of(1)));
  tier.add(key_of(1), damaged, 0);
  add(tier, key_of(2));
  damaged->bytes[17] ^= 4;
  tier.drop_if_damaged(key_of(1));
  tier.drop_if_damaged(key_of(2));
  tier.drop_if_damaged(key_of(3));
  CHECK(tier.find(key_of(1)) == nullptr);
  CHECK(has(tier, key_of(2)));
}

TEST_CASE("threads may use it at the same time") {
  MemoryTier tier(50 * kRecordBytesMax);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&tier, t] {
      for (int i = 0; i < 2000; ++i) {
        const Key key = key_of((i * (t + 1)) % 400, 1 + i / 1500);
        if (const auto value = tier.find(key); value == nullptr) tier.add(key, shared_value(key), 1);
      }
    });
  }
  threads.clear();
  CHECK(tier.bytes() <= 50 * kRecordBytesMax);
}

}  // namespace
}  // namespace sluice::cache
