// A heap of std::make_heap whose top changes its value.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <vector>

namespace sluice::scheduler {

// Puts the top of a heap where it belongs, after it has become smaller. To take it out and put it in again costs twice
// as much.
template <typename Entry>
void sink_top(std::vector<Entry>& heap) {
  const Entry top = heap.front();
  std::size_t at = 0;
  for (std::size_t child = 1; child < heap.size(); child = 2 * at + 1) {
    if (child + 1 < heap.size() && heap[child] < heap[child + 1]) ++child;
    if (!(top < heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = top;
}

}  // namespace sluice::scheduler
