// Names, and the position of each: a decision looks up the node of every worker.
//
// A table of slots with linear probing, at most half full: no allocation for each name, and one comparison for most
// look-ups. With a std::unordered_map the decision of 10,000 jobs on 10,000 nodes takes longer.
//
// Thread safety: look-ups may run in several threads. Lifetime: refers to the names.
#pragma once

#include <bit>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace sluice::scheduler {

constexpr int kNowhere = -1;

class NameIndex {
 public:
  explicit NameIndex(std::size_t most_names) : slots_(std::bit_ceil(2 * most_names + 1)) {}

  // REQUIRES: no more than `most_names`, no name twice, position >= 0
  void add(std::string_view name, int position) { slots_[slot_of(name)] = {name, position}; }

  // kNowhere: it was not added.
  int position_of(std::string_view name) const { return slots_[slot_of(name)].position; }

 private:
  struct Slot {
    std::string_view name;
    int position = kNowhere;  // free
  };

  // The slot that has the name, or the free one that it would take.
  std::size_t slot_of(std::string_view name) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = std::hash<std::string_view>()(name) & mask;
    while (slots_[at].position != kNowhere && slots_[at].name != name) at = (at + 1) & mask;
    return at;
  }

  std::vector<Slot> slots_;  // as many as a power of two
};

}  // namespace sluice::scheduler
