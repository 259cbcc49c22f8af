// Names, and the position of each: a decision looks up the node of every worker.
//
// A table of slots with linear probing, at most half full: no allocation for each name, and one comparison for most
// look-ups. A std::unordered_map of up to twenty names compares with one after the other.
//
// Thread safety: look-ups may run in several threads. Lifetime: refers to the names.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace sluice::scheduler {

constexpr int kNowhere = -1;

class NameIndex {
 public:
  explicit NameIndex(std::size_t most_names);

  // REQUIRES: no more than `most_names`, no name twice, position >= 0
  void add(std::string_view name, int position);

  int position_of(std::string_view name) const;  // kNowhere: it was not added

 private:
  struct Slot {
    std::string_view name;
    int position = kNowhere;  // nobody's
  };

  std::size_t slot_of(std::string_view name) const;  // where it stands, or would stand

  std::vector<Slot> slots_;  // as many as a power of two
};

}  // namespace sluice::scheduler
