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

// The same, for a top that mostly belongs near the bottom: its way down costs one comparison a level instead of two.
template <typename Entry>
void sink_top_to_bottom(std::vector<Entry>& heap) {
  const Entry top = heap.front();
  std::size_t at = 0;
  for (std::size_t child = 2; child < heap.size(); child = 2 * at + 2) {
    child -= static_cast<std::size_t>(heap[child] < heap[child - 1]);
    heap[at] = heap[child];
    at = child;
  }
  if (const std::size_t child = 2 * at + 1; child < heap.size()) {  // the last one has no sibling
    heap[at] = heap[child];
    at = child;
  }
  for (; at > 0 && heap[(at - 1) / 2] < top; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = top;
}

}  // namespace sluice::scheduler
