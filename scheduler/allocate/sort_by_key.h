// Sorts indices of objects by a key.
//
// Each key is made once. A comparison that goes back to the objects would load two of them from memory every time, and
// ten thousand jobs fit into no cache.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice::scheduler {

// The smallest key comes first. Indices with equal keys stay in their order.
template <typename KeyOf>
void sort_by_key(std::vector<int>& indices, const KeyOf& key_of) {
  std::vector<std::pair<decltype(key_of(0)), int>> keyed;
  keyed.reserve(indices.size());
  for (const int index : indices) keyed.emplace_back(key_of(index), index);
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(keyed.begin(), keyed.end(), indices.begin(), [](const auto& entry) { return entry.second; });
}

}  // namespace sluice::scheduler
