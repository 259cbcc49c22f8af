#include "src/cache/order/seeded_order.h"

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

using Order = std::vector<std::uint32_t>;

// torch.randperm(10, generator=torch.Generator().manual_seed(seed)).tolist()
TEST_CASE("a seed stands for torch's permutation") {
  struct Case {
    std::uint64_t seed;
    Order want;
  };
  for (const Case& c : {
           Case{0, {4, 1, 7, 5, 3, 9, 0, 8, 6, 2}},
           Case{42, {2, 6, 1, 8, 4, 5, 0, 9, 3, 7}},
           Case{(std::uint64_t{1} << 40) + 5, {1, 4, 9, 6, 3, 5, 0, 2, 8, 7}},
       })
    CHECK(seeded_order(c.seed, 10).value() == c.want);
  CHECK(seeded_order(3, 1).value() == Order{0});
}

TEST_CASE("lengths for which torch draws otherwise, and none, are refused") {
  CHECK(seeded_order(1, 0).error().code() == ErrorCode::kInvalidArgument);
  CHECK(seeded_order(1, kSeededLengthMax + 1).error().code() == ErrorCode::kInvalidArgument);
}

// list(DistributedSampler(range(10), num_replicas=ranks, rank=rank, shuffle=False, drop_last=drops_last))
TEST_CASE("an order is dealt out to ranks as by DistributedSampler") {
  const Order ten{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  struct Case {
    Deal deal;
    Order want;
  };
  for (const Case& c : {
           Case{{0, 1}, ten},
           Case{{1, 5}, {1, 6}},
           Case{{0, 4}, {0, 4, 8}},
           Case{{3, 4}, {3, 7, 1}},
           Case{{3, 4, true}, {3, 7}},
           Case{{12, 13}, {2}},
           Case{{12, 13, true}, {}},
       })
    CHECK(part_of_rank(ten, c.deal).value() == c.want);
  CHECK(part_of_rank(ten, {4, 4}).error().code() == ErrorCode::kInvalidArgument);
  CHECK(part_of_rank(ten, {0, 0}).error().code() == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::cache
