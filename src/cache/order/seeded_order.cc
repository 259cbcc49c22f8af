#include "src/cache/order/seeded_order.h"

#include <numeric>
#include <random>
#include <utility>

namespace sluice::cache {

Result<std::vector<std::uint32_t>> seeded_order(std::uint64_t seed, std::uint32_t length) {
  if (length == 0 || length > kSeededLengthMax)
    return invalid_argument("a seed stands for 1 to " + std::to_string(kSeededLengthMax) + " samples, not for " +
                            std::to_string(length));
  std::vector<std::uint32_t> order(length);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937 engine(static_cast<std::uint32_t>(seed));  // torch's takes the low 32 bits, too
  for (std::uint32_t place = 0; place + 1 < length; ++place)
    std::swap(order[place], order[place + engine() % (length - place)]);
  return order;
}

Result<std::vector<std::uint32_t>> part_of_rank(const std::vector<std::uint32_t>& order, const Deal& deal) {
  if (deal.rank >= deal.ranks)
    return invalid_argument("rank " + std::to_string(deal.rank) + " of " + std::to_string(deal.ranks));
  const std::size_t whole = order.size() / deal.ranks;
  const bool is_even = order.size() % deal.ranks == 0;
  const std::size_t each = is_even || deal.drops_last ? whole : whole + 1;
  std::vector<std::uint32_t> part;
  part.reserve(each);
  for (std::size_t i = 0; i < each; ++i) part.push_back(order[(deal.rank + i * deal.ranks) % order.size()]);
  return part;
}

}  // namespace sluice::cache
