// How much of a shared disk is for records, and what that costs.
#include "src/cache/testing/shared_disk_fixture.h"

namespace sluice::cache {
namespace {

using testing::fetches_of;
using testing::Job;
using Fixture = testing::SharedDiskFixture;

TEST_CASE("where evicted records leave holes nearly the whole bound is for records, and little is written twice",
          "[one thread]") {
  struct Case {
    const char* story;
    bool makes_holes;
    std::size_t value_bytes;
    std::size_t room;         // for so many
    double live_share_least;  // of the bound
    double live_share_most;
    double copied_most;  // for a stored byte
  };
  const Case cases[] = {{"photographs", true, 90'000, 80, .86, 1, .4},
                        {"small pictures", true, 14'000, 300, .84, .97, 1.2},
                        {"... of less than a block", true, 3000, 400, .72, .9, 4},
                        {"photographs on a disk without holes", false, 90'000, 80, .70, .77, 4}};
  for (const Case& c : cases) {
    INFO(c.story);
    const std::uint64_t bound = c.room * c.value_bytes;
    const int samples = static_cast<int>(c.room * 5 / 2);
    Fixture cache({.bytes = bound, .records = 1 << 14, .segment_bytes = bound / 40});
    cache.values.bytes_each = c.value_bytes;
    cache.disk->makes_holes = c.makes_holes;
    std::vector<Job> jobs{Job(1, samples), Job(2, samples)};
    for (int i = 0; i < samples / 2; ++i) jobs[0].fetches(cache);
    fetches_of(cache, jobs, 4 * samples);
    REQUIRE(cache.shared->is_shared());
    const std::uint64_t stored = cache.counters->stored_bytes, copied = cache.counters->rewritten_bytes;
    fetches_of(cache, jobs, 3 * samples);
    const auto live_bytes = static_cast<double>(cache.counters->records * c.value_bytes);
    CHECK(live_bytes >= c.live_share_least * static_cast<double>(cache.limits.bytes));
    CHECK(live_bytes <= c.live_share_most * static_cast<double>(cache.limits.bytes));
    const auto copied_bytes = static_cast<double>(cache.counters->rewritten_bytes - copied);
    CHECK(copied_bytes <= c.copied_most * static_cast<double>(cache.counters->stored_bytes - stored));
    cache.open();
    CHECK(cache.counters->bytes_on_disk == cache.blocks_on_disk());
    CHECK(static_cast<double>(cache.counters->records * c.value_bytes) >= .95 * live_bytes);
  }
}

TEST_CASE("large records leave holes, and a disk for more than half of them is worth sharing") {
  constexpr int kPhotographs = 400;
  Fixture cache({.bytes = std::uint64_t{kPhotographs} * 63 * 400, .records = 1 << 14, .segment_bytes = 250'000});
  cache.values.bytes_each = 40'000;
  std::vector<Job> jobs{Job(1, kPhotographs), Job(2, kPhotographs)};
  for (int i = 0; i < kPhotographs / 2; ++i) jobs[0].fetches(cache);
  fetches_of(cache, jobs, 4 * kPhotographs);
  CHECK(cache.shared->is_shared());
  CHECK(fetches_of(cache, jobs, 5 * kPhotographs) < .35);  // where nothing is evicted .37
}

}  // namespace
}  // namespace sluice::cache
