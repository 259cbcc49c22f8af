// A shared disk in memory, and jobs that use each of their samples once an epoch.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/cache/shared_disk.h"
#include "src/cache/testing/memory_disk.h"
#include "src/cache/testing/store_fixture.h"

namespace sluice::cache::testing {

inline constexpr std::size_t kValueBytes = 4000;
inline constexpr std::uint64_t kRecordBytes = kValueBytes + 50;
inline constexpr int kSamples = 1000;

inline Limits limits_for(double records) {
  const auto bytes = static_cast<std::uint64_t>(records * kRecordBytes);
  return {.bytes = bytes, .records = 1 << 14, .segment_bytes = bytes / 40};
}

// Made once each.
struct Values {
  const Bytes& of(const Key& key) {
    Bytes& value = made[key.place + key.version];
    if (value.empty()) value = value_of(key, bytes_each);
    return value;
  }
  std::size_t bytes_each = kValueBytes;
  std::map<std::string, Bytes> made;
};

struct SharedDiskFixture {
  explicit SharedDiskFixture(const Limits& of_disk) : limits(of_disk) { open(); }

  void open() {
    shared.reset();
    counters = std::make_unique<Counters>();
    auto opened = SharedDisk::open(std::make_unique<MemoryDisk>(disk), limits, clock, *counters);
    REQUIRE(opened.ok());
    shared = std::move(*opened);
  }

  // As a process does; whether it was read from its source.
  bool fetch(SharedRecords::Job job, const Key& key) {
    shared->asked(job, key);
    const bool is_fetched = !has(key);
    const std::uint64_t record_bytes = values.bytes_each + 50;
    const bool is_sent = is_fetched && (shared->is_wanted(key) || shared->free_bytes() >= record_bytes);
    if (is_sent) shared->keep(key, values.of(key));
    if (shared->wants_reclaiming()) shared->reclaim({});
    CHECK_FALSE(blocks_on_disk() > limits.bytes);
    CHECK_FALSE(shared->records() != counters->records);
    return is_fetched;
  }
  bool fetch(SharedRecords::Job job, int sample) { return fetch(job, key_of(sample)); }
  bool has(const Key& key) const {
    Bytes value;
    if (!shared->find(key, value)) return false;
    CHECK_FALSE(value != values.of(key));
    return true;
  }
  std::uint64_t blocks_on_disk() const { return disk->bytes_in_blocks(); }

  Limits limits;
  mutable Values values;
  std::shared_ptr<DiskContent> disk = std::make_shared<DiskContent>();
  sluice::testing::ManualClock clock;
  std::unique_ptr<Counters> counters;
  std::unique_ptr<SharedDisk> shared;
};

// Uses each of its samples once an epoch, in a new order.
class Job {
 public:
  Job(SharedRecords::Job number, int samples, int first_sample = 0)
      : number_(number), random_(static_cast<std::uint32_t>(number)), order_(static_cast<std::size_t>(samples)) {
    std::iota(order_.begin(), order_.end(), first_sample);
  }
  int next() {
    if (at_ == 0) std::shuffle(order_.begin(), order_.end(), random_);
    const int sample = order_[at_];
    at_ = (at_ + 1) % order_.size();
    return sample;
  }
  bool fetches(SharedDiskFixture& cache) { return cache.fetch(number_, next()); }

 private:
  const SharedRecords::Job number_;
  std::mt19937 random_;
  std::vector<int> order_;
  std::size_t at_ = 0;
};

// Fetches for each sample served, while the jobs go on in turns.
template <typename AnyJob>
double fetches_of(SharedDiskFixture& cache, std::vector<AnyJob>& jobs, int samples_each) {
  int fetches = 0;
  for (int i = 0; i < samples_each; ++i)
    for (AnyJob& job : jobs) fetches += job.fetches(cache) ? 1 : 0;
  return static_cast<double>(fetches) / (samples_each * static_cast<int>(jobs.size()));
}

// Out of phase.
inline std::vector<Job> two_jobs(SharedDiskFixture& cache) {
  std::vector<Job> jobs{Job(1, kSamples), Job(2, kSamples)};
  for (int i = 0; i < kSamples / 2; ++i) jobs[0].fetches(cache);
  return jobs;
}

}  // namespace sluice::cache::testing
