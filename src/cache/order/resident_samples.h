// Which samples a cache of several jobs should hold: those that are used again soonest (Belady's rule, over the orders
// that the jobs have announced).
//
// After a miss the sample was fetched from its source, and its next use is known or estimated (shared_orders.h). If it
// fits it is kept. If not, those whose next uses are farthest make room for it, as long as each of them is kFarther
// times as far as that of the new sample: what is stored is written, so a small gain is left. Where these do not
// suffice it passes by and nothing is evicted. So one job that uses each sample once an epoch never evicts: all that it
// has used in this epoch count the same, and all that it has not come earlier. No policy has more hits there. Samples
// of different sizes are compared by the time of their next use alone, which makes the bytes that are fetched few,
// rather than the fetches.
//
// The samples lie in a heap, the farthest next use first. A next use is computed when its sample is used, and when it
// comes to the top, where it may turn out to be nearer than it was. Those that have become farther meanwhile are not
// seen to be until the heap is made anew: after each change of the orders (SharedOrders::revision) and after as many
// misses as there are samples in it.
//
// Decides only; its caller has the bytes. Cost: O(jobs + log samples) for a use, on average.
// Bounds: 4 bytes for each sample, 16 to 32 for each that is held, kEvictedMax for an admission. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/cache/order/shared_orders.h"

namespace sluice::cache {

class ResidentSamples {
 public:
  // A sample that is as large as more others than this passes by.
  static constexpr std::size_t kEvictedMax = 64;
  // So many are looked at for the farthest one.
  static constexpr std::size_t kTurnsMost = 64;
  // Stores a tenth fewer samples than 1 would, for .000 to .006 fetches more for each sample served.
  static constexpr double kFarther = 1.25;

  struct Admission {
    bool is_kept = false;
    std::vector<std::uint32_t> evicted;
  };

  // REQUIRES: `orders` outlives it and has the same number of samples.
  ResidentSamples(const SharedOrders& orders, std::uint32_t samples, std::uint64_t capacity_bytes);

  bool holds(std::uint32_t sample) const { return sample < slots_.size() && slots_[sample] != kNoSlot; }

  // The sample was used, which `orders` has been told, and was found.
  void found(std::uint32_t sample);

  // The sample was used, which `orders` has been told, and was fetched. One that is held already is kept as it is.
  Admission fetched(std::uint32_t sample, std::uint32_t bytes);

  // What fetched() would do. `is_full`: there is no room for it but what others leave.
  enum class Fit { kNot, kInRoom, kByEviction };
  Fit fit_of(std::uint32_t sample, std::uint32_t bytes, bool is_full);

  // Its bytes are gone.
  void lost(std::uint32_t sample);

  // A smaller one is kept to by trim(), and nothing is admitted until then.
  void set_capacity(std::uint64_t bytes) { capacity_bytes_ = bytes; }
  bool is_over_capacity() const { return bytes_ > capacity_bytes_; }
  // Gives up the farthest of what is beyond the capacity, kEvictedMax at most.
  std::vector<std::uint32_t> trim();

  // Of all samples that are held; where they are more than `most`, of so many from all over the heap. `bytes`: of all
  // for which the sample stands.
  void for_some(std::size_t most, const std::function<void(std::uint32_t sample, double bytes)>& look) const;

  std::uint64_t bytes() const { return bytes_; }
  std::size_t size() const { return heap_.size(); }
  std::uint64_t memory_bytes() const {
    return heap_.capacity() * sizeof(Resident) + slots_.capacity() * sizeof(slots_[0]);
  }

 private:
  struct Resident {
    double next_use = 0;
    std::uint32_t sample = 0;
    std::uint32_t bytes = 0;
  };
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;

  double distance_to(const Resident& resident) const;
  const Resident& farthest();
  void make_heap();
  void insert(const Resident& resident);
  void erase(std::uint32_t slot);
  void move_up(std::uint32_t slot);
  void move_down(std::uint32_t slot);
  void put(std::uint32_t slot, const Resident& resident);

  const SharedOrders& orders_;
  std::uint64_t capacity_bytes_;
  std::vector<Resident> heap_;
  std::vector<std::uint32_t> slots_;  // of each sample: where in the heap it is
  std::uint64_t bytes_ = 0;
  std::uint64_t revision_ = 0;  // of the orders when the heap was made
  std::uint64_t misses_ = 0;    // since then
};

}  // namespace sluice::cache
