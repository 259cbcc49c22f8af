// Records that were asked for, not found, and would be kept: they are remembered until they come from their source.
//
// Where more than kMost are on their way, some are forgotten, and are not sent.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>

#include "src/cache/record.h"

namespace sluice::cache {

class WantedPlaces {
 public:
  static constexpr std::size_t kMost = 8192;

  void note(const Key& key, bool is_wanted) {
    const std::uint64_t place = hash_of(key.place);
    std::atomic<std::uint64_t>& note = notes_[place % kMost];
    if (is_wanted || note == place) note = is_wanted ? place : 0;
  }

  bool has(const Key& key) const {
    const std::uint64_t place = hash_of(key.place);
    return notes_[place % kMost] == place;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kMost> notes_{};  // hashes of places
};

}  // namespace sluice::cache
