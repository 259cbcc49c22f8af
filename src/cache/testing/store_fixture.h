// A store on a disk in memory, with values that follow from their keys: any wrong byte is seen.
#pragma once

#include <memory>
#include <string>

#include "src/base/testing/manual_clock.h"
#include "src/cache/segment_store.h"
#include "src/cache/testing/memory_disk.h"

namespace sluice::cache::testing {

inline Key key_of(int number, int version = 1) {
  return {"place " + std::to_string(number), "version " + std::to_string(version)};
}

inline Bytes value_of(const Key& key, std::size_t bytes) {
  Bytes value(bytes);
  std::uint32_t state = static_cast<std::uint32_t>(std::hash<std::string>{}(key.place + '/' + key.version));
  for (std::uint8_t& byte : value) byte = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return value;
}

struct StoreFixture {
  std::shared_ptr<DiskContent> disk = std::make_shared<DiskContent>();
  sluice::testing::ManualClock clock;
  std::unique_ptr<Counters> counters;
  std::unique_ptr<SegmentStore> store;

  // As a process does when it starts; one that ran before has ended.
  Result<void> open(const Limits& limits) {
    store.reset();
    counters = std::make_unique<Counters>();
    auto opened = SegmentStore::open(std::make_unique<MemoryDisk>(disk), limits, clock, *counters);
    if (!opened.ok()) return opened.error();
    store = std::move(opened).value();
    return {};
  }

  enum class Answer { kRight, kMiss, kWrong };
  Answer ask(const Key& key, std::size_t bytes) const {
    Bytes value;
    if (!store->find(key, value)) return Answer::kMiss;
    return value == value_of(key, bytes) ? Answer::kRight : Answer::kWrong;
  }
  bool has(const Key& key, std::size_t bytes) const { return ask(key, bytes) == Answer::kRight; }
  void add(const Key& key, std::size_t bytes) const { store->add(key, value_of(key, bytes)); }

  std::uint64_t blocks_on_disk() const { return disk->bytes_in_blocks(); }
};

}  // namespace sluice::cache::testing
