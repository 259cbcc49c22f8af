#include "src/cache/announced_orders.h"

#include <algorithm>

#include "src/base/testing/catch.h"
#include "src/cache/order/seeded_order.h"

namespace sluice::cache {
namespace {

using Uses = std::vector<std::uint32_t>;

TEST_CASE("an epoch is what its seed makes of the data set that was declared") {
  AnnouncedOrders orders;
  CHECK_FALSE(orders.has_declared(1, 7));
  orders.declared(1, 7, 10);
  CHECK(orders.has_declared(1, 7));
  CHECK_FALSE(orders.has_declared(1, 8));
  CHECK_FALSE(orders.has_declared(2, 7));
  CHECK(*orders.uses_of(1, {.seed = 3, .length = 10}) == *seeded_order(3, 10));
  orders.declared(1, 8, 5);
  CHECK_FALSE(orders.has_declared(1, 7));
}

TEST_CASE("the ranks of a node that announce one epoch are put together, and of another epoch are not") {
  AnnouncedOrders orders;
  orders.declared(1, 7, 10);
  const Uses all = *seeded_order(3, 10);
  const auto rank = [](std::uint32_t rank, std::uint64_t seed = 3) {
    return EpochOrder{.seed = seed, .length = 10, .rank = rank, .ranks = 5};
  };
  CHECK(*orders.uses_of(1, rank(3)) == Uses{all[3], all[8]});
  CHECK(*orders.uses_of(1, rank(1)) == Uses{all[1], all[3], all[6], all[8]});
  CHECK(*orders.uses_of(1, rank(1)) == Uses{all[1], all[3], all[6], all[8]});  // it has started anew
  const Uses next = *seeded_order(4, 10);
  EpochOrder first_of_next = rank(1, 4);
  first_of_next.is_next = true;
  CHECK(*orders.uses_of(1, first_of_next) == Uses{next[1], next[6]});
  CHECK(orders.uses_of(1, rank(1))->size() == 4);  // the other rank is still in the epoch before
  CHECK(*orders.uses_of(1, rank(3, 4)) == Uses{next[1], next[3], next[6], next[8]});
  CHECK(orders.uses_of(1, rank(0, 5))->size() == 2);
  CHECK(orders.uses_of(1, rank(0))->size() == 2);  // long over
}

TEST_CASE("of a part of the data set the uses are those of its own samples, in their order and by their own numbers") {
  AnnouncedOrders orders, all_of_them;
  const std::vector<bool> is_here{false, true, true, false, false, true, false, false, true, true};
  const Uses samples_here{1, 2, 5, 8, 9};
  orders.declared(1, 7, 10, is_here);
  all_of_them.declared(1, 7, 10);
  for (const EpochOrder& order : {EpochOrder{.seed = 3, .length = 10}, EpochOrder{.seed = 4, .length = 10, .ranks = 2},
                                  EpochOrder{.seed = 4, .length = 10, .rank = 1, .ranks = 2}}) {
    Uses expected;
    const Uses of_all = *all_of_them.uses_of(1, order);
    for (const std::uint32_t use : of_all)
      if (is_here[use]) expected.push_back(use);
    Uses uses = *orders.uses_of(1, order);
    for (std::uint32_t& use : uses) use = samples_here.at(use);
    CHECK(uses == expected);
  }
  CHECK_FALSE(orders.uses_of(1, {.length = 5}).ok());
  orders.declared(2, 7, 10, std::vector<bool>(10));
  CHECK(orders.uses_of(2, {.length = 10})->empty());
}

TEST_CASE("an order of another data set, or of a rank that is none, is refused") {
  AnnouncedOrders orders;
  orders.declared(1, 7, 10);
  for (const EpochOrder& order :
       {EpochOrder{.length = 9}, EpochOrder{.length = 10, .rank = 1}, EpochOrder{.length = 10, .rank = 0, .ranks = 0},
        EpochOrder{.length = 10, .ranks = AnnouncedOrders::kRanksMost + 1}})
    CHECK_FALSE(orders.uses_of(1, order).ok());
  CHECK(orders.uses_of(1, {.length = 10}).ok());
}

TEST_CASE("more jobs than are remembered declare again") {
  AnnouncedOrders orders;
  for (std::uint64_t job = 0; job <= AnnouncedOrders::kJobsMost; ++job) orders.declared(job, 7, 10);
  CHECK_FALSE(orders.has_declared(0, 7));
  CHECK(orders.has_declared(AnnouncedOrders::kJobsMost, 7));
}

}  // namespace
}  // namespace sluice::cache
