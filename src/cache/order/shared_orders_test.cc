#include "src/cache/order/shared_orders.h"

#include <limits>
#include <numeric>

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

constexpr double kNeverUsed = std::numeric_limits<double>::infinity();
constexpr SharedOrders::Job kFirst = 7;
constexpr SharedOrders::Job kSecond = 8;
using Order = std::vector<std::uint32_t>;

Order counted_up(std::uint32_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

// From now, in uses by all.
double distance(const SharedOrders& orders, std::uint32_t sample) {
  return orders.next_use(sample) - static_cast<double>(orders.uses());
}

TEST_CASE("the next use is that of the job that comes first") {
  SharedOrders orders({.samples = 4});
  REQUIRE(orders.join(kFirst, 4).ok());
  REQUIRE(orders.join(kSecond, 4).ok());
  REQUIRE(orders.begin_epoch(kFirst, Order{0, 1, 2, 3}).ok());
  REQUIRE(orders.begin_epoch(kSecond, Order{3, 2, 0, 1}).ok());
  // Two jobs of the same pace make two uses in the time of one.
  CHECK(distance(orders, 0) == Approx(0));
  CHECK(distance(orders, 1) == Approx(2).epsilon(0.01));
  CHECK(distance(orders, 2) == Approx(2).epsilon(0.01));
  CHECK(distance(orders, 3) == Approx(0));
  orders.leave(kSecond);
  CHECK(distance(orders, 3) == Approx(3).epsilon(0.01));
  orders.leave(kFirst);
  CHECK(orders.next_use(3) == kNeverUsed);
}

TEST_CASE("paces are measured, and uses of a job that has paused recede and are dropped") {
  constexpr std::uint32_t kSamples = 20000;
  SharedOrders orders({.samples = kSamples});
  REQUIRE(orders.join(kFirst, 0).ok());
  REQUIRE(orders.join(kSecond, 0).ok());
  const auto run = [&](std::uint32_t first_uses, std::uint32_t second_uses, int times) {
    for (int i = 0; i < times; ++i) {
      for (std::uint32_t use = 0; use < first_uses; ++use) orders.use(kFirst, 0);
      for (std::uint32_t use = 0; use < second_uses; ++use) orders.use(kSecond, 0);
    }
    REQUIRE(orders.begin_epoch(kFirst, counted_up(kSamples / 2)).ok());
    REQUIRE(orders.begin_epoch(kSecond, counted_up(kSamples)).ok());
  };
  run(3, 1, 5000);
  CHECK(distance(orders, 3000) == Approx(4000).epsilon(0.05));
  CHECK(distance(orders, 15000) == Approx(60000).epsilon(0.05));
  const std::uint64_t revision = orders.revision();
  run(1, 0, 4096);
  CHECK(distance(orders, 15000) > 100000);
  run(1, 0, 20000);
  CHECK(orders.next_use(15000) == kNeverUsed);
  CHECK(orders.revision() > revision + 4);  // two announcements each, and the pause
  // It comes back.
  run(0, 1, 500);
  CHECK(distance(orders, 15000) < 1e6);
}

TEST_CASE("one job alone gains nothing by what it will do in its next epoch, two do") {
  SharedOrders orders({.samples = 4});
  REQUIRE(orders.join(kFirst, 4).ok());
  REQUIRE(orders.begin_epoch(kFirst, Order{0, 1, 2}).ok());
  REQUIRE(orders.announce_next_epoch(kFirst, Order{2, 1, 0}).ok());
  orders.use(kFirst, 0);
  orders.use(kFirst, 1);
  CHECK(distance(orders, 0) == distance(orders, 1));
  REQUIRE(orders.join(kSecond, 4).ok());
  REQUIRE(orders.begin_epoch(kSecond, Order{3, 0, 1, 2}).ok());
  orders.use(kSecond, 3);
  orders.use(kSecond, 0);
  orders.use(kSecond, 1);
  CHECK(distance(orders, 0) > distance(orders, 1));
}

TEST_CASE("an announced epoch that begins by itself is a revision, another one is not") {
  SharedOrders orders({.samples = 2});
  REQUIRE(orders.join(kFirst, 2).ok());
  REQUIRE(orders.begin_epoch(kFirst, Order{0, 1}).ok());
  REQUIRE(orders.announce_next_epoch(kFirst, Order{1, 0}).ok());
  const std::uint64_t revision = orders.revision();
  for (const std::uint32_t sample : {0U, 1U}) orders.use(kFirst, sample);
  CHECK(orders.revision() == revision);
  orders.use(kFirst, 1);
  CHECK(orders.revision() == revision + 1);
  for (const std::uint32_t sample : {0U, 0U, 1U}) orders.use(kFirst, sample);
  CHECK(orders.revision() == revision + 1);
}

TEST_CASE("unknown jobs, and samples that are none, change nothing but the time") {
  SharedOrders orders({.samples = 2});
  orders.use(kFirst, 0);
  REQUIRE(orders.join(kFirst, 2).ok());
  orders.use(kFirst, 2);
  orders.use(kFirst, UINT32_MAX);
  CHECK(orders.uses() == 3);
  CHECK(distance(orders, 0) == Approx(2 + 1));
  CHECK_FALSE(orders.is_known(0));
  CHECK(orders.next_use(2) == kNeverUsed);
  CHECK(orders.begin_epoch(kSecond, Order{0}).error().code() == ErrorCode::kNotFound);
  CHECK(orders.begin_epoch(kFirst, Order{5}).error().code() == ErrorCode::kInvalidArgument);
  orders.leave(kSecond);
}

TEST_CASE("jobs and bytes are bounded, and a job that begins anew takes no second place") {
  SharedOrders orders({.samples = 100, .jobs = 2, .bytes = 1300});
  REQUIRE(orders.join(kFirst, 0).ok());
  REQUIRE(orders.join(kFirst, 0).ok());
  REQUIRE(orders.join(kSecond, 0).ok());
  CHECK(orders.memory_bytes() == 800);
  CHECK(orders.join(9, 0).error().code() == ErrorCode::kResourceExhausted);
  CHECK(orders.announce_next_epoch(kFirst, counted_up(100)).error().code() == ErrorCode::kResourceExhausted);
  CHECK(orders.announce_next_epoch(kFirst, counted_up(10)).ok());
  CHECK(orders.memory_bytes() == 1200);
  CHECK(orders.begin_epoch(kSecond, counted_up(10)).error().code() == ErrorCode::kResourceExhausted);
  orders.leave(kFirst);
  CHECK(orders.begin_epoch(kSecond, counted_up(10)).ok());
}

}  // namespace
}  // namespace sluice::cache
