// The order of an epoch from the seed that torch's samplers make it of: a job announces eight bytes in place of four
// for each sample.
//
// torch.randperm on the CPU draws one 32-bit number of MT19937 for each place but the last, and exchanges the place
// with one of those behind it (Fisher and Yates). From about 2^32 / 20 numbers on it draws otherwise; such orders are
// announced as lists. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"

namespace sluice::cache {

inline constexpr std::uint32_t kSeededLengthMax = UINT32_MAX / 20 - 1;

// torch.randperm(length, generator=torch.Generator().manual_seed(seed)), which is RandomSampler's epoch if `seed` is
// what it has drawn. InvalidArgument: no length, or one beyond kSeededLengthMax.
Result<std::vector<std::uint32_t>> seeded_order(std::uint64_t seed, std::uint32_t length);

// The part of one rank, as DistributedSampler deals an order out: every `ranks`-th, begun anew until each rank has as
// many, or cut so that each has. InvalidArgument: `rank` is none of the ranks.
struct Deal {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  bool drops_last = false;
};
Result<std::vector<std::uint32_t>> part_of_rank(const std::vector<std::uint32_t>& order, const Deal& deal);

}  // namespace sluice::cache
