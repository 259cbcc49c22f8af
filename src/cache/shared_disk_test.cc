// A disk that several jobs ask: what it fetches, that its bound holds, and that no byte is ever wrong.
#include "src/cache/shared_disk.h"

#include <random>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/cache/order/seeded_order.h"
#include "src/cache/reclaimer.h"
#include "src/cache/rewrite_plan.h"
#include "src/cache/testing/shared_disk_fixture.h"

namespace sluice::cache {
namespace {

using testing::Bytes;
using testing::DiskContent;
using testing::fetches_of;
using testing::Job;
using testing::key_of;
using testing::kRecordBytes;
using testing::kSamples;
using testing::kValueBytes;
using testing::limits_for;
using testing::two_jobs;
using testing::value_of;
using Fixture = testing::SharedDiskFixture;

TEST_CASE("of one job nothing is evicted, and its records take the whole bound, as in a store of its own") {
  Fixture cache(limits_for(300));
  std::vector<Job> jobs{Job(1, kSamples)};
  fetches_of(cache, jobs, kSamples);
  testing::StoreFixture own;
  REQUIRE(own.open(cache.limits).ok());
  for (int i = 0; i < kSamples; ++i) own.add(key_of(i), kValueBytes);
  CHECK(cache.counters->records == own.counters->records);
  CHECK(cache.counters->records > 290);
  for (int epoch = 0; epoch < 5; ++epoch) {
    const double hits = kSamples * (1 - fetches_of(cache, jobs, kSamples));
    CHECK(hits == Approx(static_cast<double>(cache.counters->records)));
  }
  CHECK(cache.counters->evicted + cache.counters->rewritten_bytes == 0);
  CHECK_FALSE(cache.shared->is_shared());
}

TEST_CASE("two jobs out of phase fetch less than where nothing is evicted, and the disk is written within its bound") {
  Fixture cache(limits_for(400));
  std::vector<Job> jobs = two_jobs(cache);
  fetches_of(cache, jobs, 3 * kSamples);
  CHECK(cache.shared->is_shared());
  const std::uint64_t evicted = cache.counters->evicted, rewritten = cache.counters->rewritten_bytes;
  const double fetches = fetches_of(cache, jobs, 5 * kSamples);
  CHECK(fetches < 0.57);  // where nothing is evicted .60
  CHECK(fetches > 0.45);
  // As many come as go.
  const auto stored_bytes = static_cast<double>((cache.counters->evicted - evicted) * kRecordBytes);
  const auto copied_bytes = static_cast<double>(cache.counters->rewritten_bytes - rewritten);
  CHECK(stored_bytes > 0);
  CHECK(copied_bytes / stored_bytes < write_amplification_max(SharedDisk::kLiveShareMax) - 1);
  CHECK(cache.counters->damaged + cache.counters->read_errors + cache.counters->write_errors == 0);
}

TEST_CASE("as long as all fits nothing is evicted, of however many jobs") {
  Fixture cache(limits_for(1100));
  std::vector<Job> jobs{Job(1, 500), Job(2, 500), Job(3, 500, 500)};
  fetches_of(cache, jobs, 500);
  CHECK(fetches_of(cache, jobs, 1500) == 0);
  CHECK(cache.counters->evicted + cache.counters->rewritten_bytes == 0);
}

TEST_CASE("a disk on which most is found keeps what it has") {
  Fixture cache(limits_for(750));
  std::vector<Job> jobs = two_jobs(cache);
  fetches_of(cache, jobs, 3 * kSamples);
  CHECK(cache.counters->evicted == 0);
  CHECK(fetches_of(cache, jobs, kSamples) < 0.3);
}

TEST_CASE("questions alone push nothing out: their files may be fast to read, and never come") {
  Fixture cache(limits_for(300));
  std::vector<Job> jobs{Job(1, kSamples)};
  fetches_of(cache, jobs, 2 * kSamples);
  jobs.emplace_back(2, kSamples);
  bool is_wanted = false;
  for (int i = 0; i < 4 * kSamples; ++i) {
    const auto job = static_cast<std::size_t>(i % 2);
    const Key key = key_of(jobs[job].next());
    cache.shared->asked(job + 1, key);
    is_wanted = is_wanted || cache.shared->is_wanted(key);
    if (cache.shared->wants_reclaiming()) cache.shared->reclaim({});
  }
  CHECK(cache.counters->evicted == 0);
  CHECK_FALSE(cache.shared->is_shared());
  CHECK(is_wanted);
}

// As Job, in the order of seeds, which it announces.
class AnnouncingJob {
 public:
  enum class Announces { kNothing, kEpoch, kNextEpoch, kFalsely };

  AnnouncingJob(SharedRecords::Job number, Announces announces) : number_(number), announces_(announces) {}

  bool fetches(Fixture& cache) {
    if (at_ == 0) begin_epoch(cache);
    const auto sample = static_cast<int>(order_[at_]);
    at_ = (at_ + 1) % order_.size();
    return cache.fetch(number_, sample);
  }

 private:
  void begin_epoch(Fixture& cache) {
    const std::uint64_t seed = 1000 * number_ + ++epoch_;
    order_ = *seeded_order(seed, kSamples);
    if (announces_ == Announces::kNothing) return;
    if (epoch_ == 1) {
      CHECK_FALSE(cache.shared->begin_epoch(number_, kDataSet, {.seed = seed, .length = kSamples}));
      SharedRecordPlaces places;
      for (int i = 0; i < kSamples; ++i) places.push_back(hash_of(key_of(i).place));
      REQUIRE(cache.shared->declare(number_, kDataSet, places));
    }
    EpochOrder order{.seed = announces_ == Announces::kFalsely ? seed + 500 : seed, .length = kSamples};
    CHECK(cache.shared->begin_epoch(number_, kDataSet, order));
    if (announces_ != Announces::kNextEpoch) return;
    ++order.seed;
    order.is_next = true;
    CHECK(cache.shared->begin_epoch(number_, kDataSet, order));
  }

  using SharedRecordPlaces = std::vector<SharedRecords::Place>;
  static constexpr std::uint64_t kDataSet = 77;
  const SharedRecords::Job number_;
  const Announces announces_;
  std::uint64_t epoch_ = 0;
  std::vector<std::uint32_t> order_;
  std::size_t at_ = 0;
};

TEST_CASE("jobs that announce their epochs fetch less, and false announcements cost hits and no byte", "[one thread]") {
  using Announces = AnnouncingJob::Announces;
  const auto fetches_with = [](Announces announces) {
    Fixture cache(limits_for(400));
    std::vector<AnnouncingJob> jobs{{1, announces}, {2, announces}};
    for (int i = 0; i < kSamples / 2; ++i) jobs[0].fetches(cache);
    fetches_of(cache, jobs, 2 * kSamples);
    return fetches_of(cache, jobs, 3 * kSamples);
  };
  const double unknown = fetches_with(Announces::kNothing), known = fetches_with(Announces::kEpoch);
  CHECK(known < unknown - 0.03);
  CHECK(fetches_with(Announces::kNextEpoch) < known - 0.03);
  const double falsely = fetches_with(Announces::kFalsely);
  CHECK(falsely > known);
  CHECK(falsely < 0.65);
}

TEST_CASE("what an earlier job has left makes room for the next one, which has the whole bound in the end") {
  Fixture cache(limits_for(400));
  std::vector<Job> first{Job(1, kSamples)}, next{Job(2, kSamples, kSamples)};
  fetches_of(cache, first, 2 * kSamples);
  CHECK(fetches_of(cache, next, kSamples) == 1);
  fetches_of(cache, next, 6 * kSamples);
  CHECK(fetches_of(cache, next, kSamples) < 0.63);
  CHECK_FALSE(cache.shared->is_shared());
  const std::uint64_t evicted = cache.counters->evicted, rewritten = cache.counters->rewritten_bytes;
  fetches_of(cache, next, 3 * kSamples);
  CHECK(cache.counters->evicted == evicted);
  CHECK(cache.counters->rewritten_bytes == rewritten);
}

TEST_CASE("what was kept before a restart is held after it, and goes when it is not used") {
  Fixture cache(limits_for(400));
  std::vector<Job> jobs = two_jobs(cache);
  fetches_of(cache, jobs, 3 * kSamples);
  cache.open();
  CHECK(cache.shared->records() == cache.counters->records);
  CHECK(cache.shared->records() > 250);
  CHECK(fetches_of(cache, jobs, kSamples) < 0.75);
  CHECK(fetches_of(cache, jobs, 5 * kSamples) < 0.57);
}

TEST_CASE("questions that tell no job are answered, and push nothing out") {
  Fixture cache(limits_for(200));
  for (int i = 0; i < 300; ++i) cache.shared->keep(key_of(i), cache.values.of(key_of(i)));
  CHECK(cache.has(key_of(0)));
  CHECK_FALSE(cache.has(key_of(299)));
  CHECK(cache.counters->evicted == 0);
  CHECK(cache.counters->not_stored_full > 100);
}

TEST_CASE("a file that has changed is held once, in its new version") {
  Fixture cache(limits_for(200));
  for (int version = 1; version < 5; ++version) {
    for (int i = 0; i < 100; ++i) CHECK(cache.fetch(1, key_of(i, version)));
    for (int i = 0; i < 100; ++i) CHECK_FALSE(cache.fetch(1, key_of(i, version)));
    CHECK(cache.shared->records() == 100);
  }
  for (int i = 0; i < 100; ++i) cache.shared->keep(key_of(i, 5), cache.values.of(key_of(i, 5)));  // unasked
  CHECK(cache.shared->records() == 100);
  for (int i = 0; i < 100; ++i) CHECK(cache.has(key_of(i, 5)));
}

TEST_CASE("a disk that is too small for three segments keeps what it has") {
  Fixture cache({.bytes = 64 << 10, .records = 1 << 14, .segment_bytes = 32 << 10});
  std::vector<Job> jobs{Job(1, 200), Job(2, 200)};
  fetches_of(cache, jobs, 2000);
  CHECK(cache.counters->evicted == 0);
  CHECK(cache.counters->records > 10);
}

TEST_CASE("disks that fail while they are shared cost hits, and what is held is what is there") {
  Fixture cache(limits_for(400));
  std::vector<Job> jobs = two_jobs(cache);
  std::mt19937 random(5);
  const auto below = [&](std::uint32_t bound) { return random() % bound; };
  for (int turn = 0; turn < 100; ++turn) {
    INFO(turn);
    if (below(3) == 0) cache.disk->room = below(20'000);
    if (below(4) == 0) cache.disk->refuses_truncation = true;
    if (below(4) == 0) cache.disk->refuses_removal = true;
    if (below(8) == 0) cache.disk->refuses_reads = true;
    if (below(8) == 0) cache.disk->refuses_writes = true;
    const bool ends = below(10) == 0;
    if (ends) cache.disk->until_power_loss = below(20'000);
    if (below(4) == 0 && !cache.disk->files.empty()) {
      auto& file =
          *std::next(cache.disk->files.begin(), below(static_cast<std::uint32_t>(cache.disk->files.size())))->second;
      for (int i = 0; i < 3 && !file.empty(); ++i) file[random() % file.size()] ^= 16;
    }
    fetches_of(cache, jobs, 20);
    cache.disk->room = DiskContent::kNoLimit;
    cache.disk->refuses_truncation = cache.disk->refuses_removal = false;
    cache.disk->refuses_reads = cache.disk->refuses_writes = false;
    cache.clock.advance(SegmentStore::kPauseAfterFailure);
    cache.disk->until_power_loss = DiskContent::kNoLimit;
    if (ends) cache.open();
    fetches_of(cache, jobs, 80);
  }
  cache.open();  // segments that could not be removed are there again
  fetches_of(cache, jobs, 2 * kSamples);
  CHECK(fetches_of(cache, jobs, 3 * kSamples) < 0.6);
}

TEST_CASE("threads that ask and keep while another one reclaims see right bytes only") {
  Fixture cache(limits_for(300));
  {
    Reclaimer reclaimer(*cache.shared);
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> threads;
    for (int t = 1; t <= 4; ++t) {
      threads.emplace_back([&, t] {
        Job job(static_cast<SharedRecords::Job>(t), 500);
        for (int i = 0; i < 2000; ++i) {
          const Key key = key_of(job.next(), 1 + i / 1500);
          Bytes value;
          cache.shared->asked(static_cast<SharedRecords::Job>(t), key);
          if (cache.shared->find(key, value)) {
            if (value != value_of(key, kValueBytes)) ++wrong;
          } else if (cache.shared->is_wanted(key) || cache.shared->free_bytes() > kRecordBytes) {
            cache.shared->keep(key, value_of(key, kValueBytes));
          }
          if (cache.shared->wants_reclaiming()) reclaimer.wake();
        }
      });
    }
    threads.clear();
    CHECK(wrong == 0);
  }
  CHECK(cache.counters->damaged == 0);
  CHECK(cache.counters->evicted > 0);
  CHECK(cache.shared->records() == cache.counters->records);
  CHECK(cache.blocks_on_disk() <= cache.limits.bytes);
}

}  // namespace
}  // namespace sluice::cache
