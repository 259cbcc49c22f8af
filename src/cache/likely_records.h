// Which records another process is likely to have, by its answers so far: a bit for each key, by its hash.
//
// A key that was not asked for yet counts as there while nearly all are found, as in the first epoch of a process whose
// cache has the data set. A wrong guess costs a request too many, or one that is made late.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <memory>

#include "src/cache/record.h"

namespace sluice::cache {

class LikelyRecords {
 public:
  static constexpr std::size_t kBits = std::size_t{1} << 25;  // 4 MiB: 3 % of a million keys share theirs
  static constexpr double kNearlyAll = 0.98;

  LikelyRecords() : words_(new std::atomic<std::uint64_t>[kBits / 64]()) {}

  // What a question has found.
  void note(const Key& key, bool is_found) {
    set(key, is_found);
    const double newest = is_found ? 1 : 0;
    found_share_ = found_share_ + (newest - found_share_) / 128;
  }
  void note_kept(const Key& key) { set(key, true); }

  bool has(const Key& key) const {
    const std::size_t bit = bit_of(key);
    return (words_[bit / 64].load(std::memory_order_relaxed) >> (bit % 64) & 1) != 0 || found_share_ >= kNearlyAll;
  }

 private:
  static std::size_t bit_of(const Key& key) { return (hash_of(key.place) ^ hash_of(key.version)) % kBits; }

  void set(const Key& key, bool is_there) {
    const std::size_t bit = bit_of(key);
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    if (is_there)
      words_[bit / 64].fetch_or(mask, std::memory_order_relaxed);
    else
      words_[bit / 64].fetch_and(~mask, std::memory_order_relaxed);
  }

  const std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  std::atomic<double> found_share_ = 0;
};

}  // namespace sluice::cache
