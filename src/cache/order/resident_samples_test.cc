#include "src/cache/order/resident_samples.h"

#include <numeric>
#include <random>

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

using Order = std::vector<std::uint32_t>;
constexpr SharedOrders::Job kFirstJob = 1;
constexpr SharedOrders::Job kSecondJob = 2;

struct Cache {
  Cache(std::uint32_t samples, std::uint64_t capacity)
      : orders({.samples = samples}), residents(orders, samples, capacity) {}

  void begin(SharedOrders::Job job, const Order& order) {
    REQUIRE(orders.join(job, 0).ok());
    REQUIRE(orders.begin_epoch(job, order).ok());
  }
  // A miss: what was evicted for it, and whether it is kept.
  ResidentSamples::Admission fetch(SharedOrders::Job job, std::uint32_t sample, std::uint32_t bytes = 1) {
    orders.use(job, sample);
    return residents.fetched(sample, bytes);
  }

  SharedOrders orders;
  ResidentSamples residents;
};

TEST_CASE("what is used last makes room for what is used before it, and what is used later passes by") {
  Cache cache(6, 2);
  cache.begin(kFirstJob, {0, 1, 2, 3, 4, 5});
  cache.begin(kSecondJob, {3, 5, 2, 1, 0, 4});
  CHECK(cache.fetch(kFirstJob, 0).is_kept);          // the second one uses it after four others
  CHECK(cache.fetch(kSecondJob, 3).is_kept);         // the first one uses it after two others
  CHECK_FALSE(cache.fetch(kSecondJob, 5).is_kept);   // ... after four, and the second one the 0 after two
  const auto admission = cache.fetch(kFirstJob, 1);  // the second one after one, as the first one the 3
  CHECK(admission.is_kept);
  CHECK(admission.evicted == Order{0});
  CHECK(cache.residents.holds(3));
}

TEST_CASE("a sample of many bytes makes several go, if all of them are used later, and else none") {
  Cache cache(6, 4);
  cache.begin(kFirstJob, {0, 1, 2, 3, 4, 5});
  cache.begin(kSecondJob, {4, 5, 1, 2, 0, 3});
  REQUIRE(cache.fetch(kFirstJob, 0, 2).is_kept);
  REQUIRE(cache.fetch(kFirstJob, 1, 2).is_kept);
  SECTION("all") {
    const auto admission = cache.fetch(kFirstJob, 4, 4);
    CHECK(admission.is_kept);
    CHECK(admission.evicted == Order{0, 1});
    CHECK(cache.residents.bytes() == 4);
  }
  SECTION("one is nearer") {
    for (const std::uint32_t sample : {4U, 5U, 1U, 2U}) cache.orders.use(kSecondJob, sample);
    CHECK_FALSE(cache.fetch(kFirstJob, 3, 4).is_kept);  // the 1 would go, and the 0 comes next
    CHECK(cache.residents.holds(1));
    CHECK(cache.residents.holds(0));
    CHECK(cache.residents.bytes() == 4);
  }
  SECTION("it would not fit alone") { CHECK_FALSE(cache.fetch(kFirstJob, 2, 5).is_kept); }
}

TEST_CASE("not too many go for one") {
  constexpr std::uint32_t kMost = ResidentSamples::kEvictedMax;
  Cache cache(200, 100);
  cache.begin(kFirstJob, {0});
  for (std::uint32_t sample = 0; sample < 100; ++sample) cache.fetch(kFirstJob, sample);
  cache.orders.leave(kFirstJob);
  REQUIRE(cache.orders.join(kSecondJob, 10, Order{100, 101}).ok());
  CHECK_FALSE(cache.fetch(kSecondJob, 100, kMost + 1).is_kept);
  CHECK(cache.residents.size() == 100);
  CHECK(cache.fetch(kSecondJob, 101, kMost).evicted.size() == kMost);
}

TEST_CASE("what is lost leaves room, and what is held is not kept twice") {
  Cache cache(4, 1);
  cache.begin(kFirstJob, {0, 1, 2, 3});
  CHECK(cache.fetch(kFirstJob, 0).is_kept);
  CHECK(cache.residents.fetched(0, 1).is_kept);
  CHECK(cache.residents.bytes() == 1);
  CHECK_FALSE(cache.fetch(kFirstJob, 1).is_kept);
  cache.residents.lost(0);
  cache.residents.lost(0);
  cache.residents.lost(77);
  CHECK(cache.residents.bytes() == 0);
  CHECK(cache.fetch(kFirstJob, 2).is_kept);
  CHECK_FALSE(cache.residents.fetched(77, 1).is_kept);
}

TEST_CASE("one job of permutations never evicts, whatever it announces, also beside one that has paused") {
  constexpr std::uint32_t kSamples = 200;
  const bool announces = GENERATE(false, true);
  const bool announces_next = GENERATE(false, true);
  const bool has_neighbour = GENERATE(false, true);
  INFO("announces " << announces << ", the next " << announces_next << ", neighbour " << has_neighbour);
  std::mt19937 random(5);
  Cache cache(kSamples, 50);
  Order order(kSamples);
  std::iota(order.begin(), order.end(), 0U);
  if (has_neighbour) cache.begin(kSecondJob, order);
  if (has_neighbour) cache.fetch(kSecondJob, 3);
  REQUIRE(cache.orders.join(kFirstJob, kSamples).ok());
  Order next = order;
  const int warm_up = has_neighbour ? 110 : 0;  // until the neighbour counts as paused
  for (int epoch = 0; epoch < warm_up + 6; ++epoch) {
    order = next;
    for (std::uint32_t i = kSamples; i > 1; --i) std::swap(next[i - 1], next[random() % i]);
    if (announces) REQUIRE(cache.orders.begin_epoch(kFirstJob, order).ok());
    if (announces && announces_next) REQUIRE(cache.orders.announce_next_epoch(kFirstJob, next).ok());
    int hits = 0;
    for (const std::uint32_t sample : order) {
      cache.orders.use(kFirstJob, sample);
      if (cache.residents.holds(sample)) {
        ++hits;
        cache.residents.found(sample);
      } else if (!cache.residents.fetched(sample, 1).evicted.empty()) {
        CHECK(epoch < warm_up);
      }
    }
    if (epoch > warm_up) CHECK(hits == 50);
  }
}

// Slow and plain: all residents, looked at one by one.
TEST_CASE("after every change of the orders, the farthest of all goes") {
  constexpr std::uint32_t kSamples = 60;
  std::mt19937 random(11);
  Cache cache(kSamples, 20);
  Order order(kSamples);
  std::iota(order.begin(), order.end(), 0U);
  int evictions = 0;
  for (int round = 0; round < 300; ++round) {
    const SharedOrders::Job job = random() % 3;
    for (std::uint32_t i = kSamples; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    if (random() % 4 == 0)
      cache.orders.leave(job);
    else if (random() % 2 == 0)
      static_cast<void>(cache.orders.join(job, kSamples));
    else
      static_cast<void>(cache.orders.begin_epoch(job, order, random() % kSamples));
    const std::uint32_t sample = random() % kSamples;
    double farthest = -1;
    for (std::uint32_t other = 0; other < kSamples; ++other)
      if (cache.residents.holds(other)) farthest = std::max(farthest, cache.orders.next_use(other));
    if (cache.residents.holds(sample)) continue;
    const bool was_full = cache.residents.size() == 20;
    const auto admission = cache.residents.fetched(sample, 1);
    INFO("round " << round);
    const auto now = static_cast<double>(cache.orders.uses());
    const bool is_farther = farthest - now > ResidentSamples::kFarther * (cache.orders.next_use(sample) - now);
    CHECK(admission.is_kept == (!was_full || is_farther));
    CHECK(admission.evicted.size() == (was_full && admission.is_kept ? 1 : 0));
    for (const std::uint32_t evicted : admission.evicted) CHECK(cache.orders.next_use(evicted) == farthest);
    evictions += static_cast<int>(admission.evicted.size());
    CHECK(cache.residents.bytes() == cache.residents.size());
    CHECK(cache.residents.size() <= 20);
  }
  CHECK(evictions > 20);
}

}  // namespace
}  // namespace sluice::cache
