#include "scheduler/model/fair_shares.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace sluice::scheduler {

std::vector<double> fair_shares(const std::vector<double>& needs, double capacity) {
  std::vector<std::size_t> order(needs.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return needs[a] < needs[b]; });
  std::vector<double> shares(needs.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    shares[order[i]] = std::min(needs[order[i]], capacity / static_cast<double>(order.size() - i));
    capacity -= shares[order[i]];
  }
  return shares;
}

}  // namespace sluice::scheduler
