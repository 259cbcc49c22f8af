#include "src/cache/order/resident_samples.h"

#include <utility>

namespace sluice::cache {

ResidentSamples::ResidentSamples(const SharedOrders& orders, std::uint32_t samples, std::uint64_t capacity_bytes)
    : orders_(orders), capacity_bytes_(capacity_bytes), slots_(samples, kNoSlot) {}

void ResidentSamples::found(std::uint32_t sample) {
  if (!holds(sample)) return;
  const std::uint32_t slot = slots_[sample];
  heap_[slot].next_use = orders_.next_use(sample);
  move_up(slot);
  move_down(slots_[sample]);
}

ResidentSamples::Admission ResidentSamples::fetched(std::uint32_t sample, std::uint32_t bytes) {
  if (sample >= slots_.size() || bytes > capacity_bytes_) return {};
  if (holds(sample)) return {.is_kept = true};
  ++misses_;
  const Resident arrived{orders_.next_use(sample), sample, bytes};
  // 1. Take the farthest away, as long as room is missing and they are farther than the new one.
  std::vector<Resident> taken;
  while (bytes_ + bytes > capacity_bytes_ && taken.size() < kEvictedMax) {
    const Resident next = farthest();
    if (distance_to(next) <= kFarther * distance_to(arrived)) break;
    taken.push_back(next);
    erase(slots_[next.sample]);
  }
  // 2. If that is not enough, they stay.
  if (bytes_ + bytes > capacity_bytes_) {
    for (const Resident& resident : taken) insert(resident);
    return {};
  }
  // 3. Else they go.
  insert(arrived);
  Admission admission{.is_kept = true};
  for (const Resident& resident : taken) admission.evicted.push_back(resident.sample);
  return admission;
}

ResidentSamples::Fit ResidentSamples::fit_of(std::uint32_t sample, std::uint32_t bytes, bool is_full) {
  if (sample >= slots_.size() || bytes > capacity_bytes_) return Fit::kNot;
  if (holds(sample) || (!is_full && bytes_ + bytes <= capacity_bytes_)) return Fit::kInRoom;
  if (heap_.empty()) return Fit::kNot;
  const Resident arrived{orders_.next_use(sample), sample, bytes};
  if (distance_to(farthest()) > kFarther * distance_to(arrived)) return Fit::kByEviction;
  ++misses_;  // fetched() will not be asked
  return Fit::kNot;
}

std::vector<std::uint32_t> ResidentSamples::trim() {
  std::vector<std::uint32_t> evicted;
  while (bytes_ > capacity_bytes_ && evicted.size() < kEvictedMax) {
    evicted.push_back(farthest().sample);
    erase(slots_[evicted.back()]);
  }
  return evicted;
}

double ResidentSamples::distance_to(const Resident& resident) const {
  return resident.next_use - static_cast<double>(orders_.uses());
}

void ResidentSamples::lost(std::uint32_t sample) {
  if (holds(sample)) erase(slots_[sample]);
}

// REQUIRES: the heap is not empty, as it is not while room is missing for what would fit alone.
const ResidentSamples::Resident& ResidentSamples::farthest() {
  if (revision_ != orders_.revision() || misses_ > heap_.size()) make_heap();
  // Each turn takes one sample down that is nearer than it was. Where all are, as the pace of a job has changed, the
  // farthest of some will do.
  std::uint32_t best = heap_.front().sample;
  for (std::size_t turn = 0; turn < kTurnsMost; ++turn) {
    const std::uint32_t sample = heap_.front().sample;
    const double before = heap_.front().next_use;
    heap_.front().next_use = orders_.next_use(sample);
    if (heap_.front().next_use >= before) return heap_.front();
    move_down(0);
    if (heap_.front().sample == sample) return heap_.front();
    if (turn == 0 || heap_[slots_[sample]].next_use > heap_[slots_[best]].next_use) best = sample;
  }
  return heap_[slots_[best]];
}

void ResidentSamples::for_some(std::size_t most,
                               const std::function<void(std::uint32_t sample, double bytes)>& look) const {
  const std::size_t stride = (heap_.size() + most - 1) / most;
  if (stride == 0) return;
  const std::size_t looks = (heap_.size() + stride - 1) / stride;
  const double stands_for = static_cast<double>(heap_.size()) / static_cast<double>(looks);
  for (std::size_t slot = 0; slot < heap_.size(); slot += stride)
    look(heap_[slot].sample, heap_[slot].bytes * stands_for);
}

void ResidentSamples::make_heap() {
  for (Resident& resident : heap_) resident.next_use = orders_.next_use(resident.sample);
  for (std::size_t slot = heap_.size() / 2; slot-- > 0;) move_down(static_cast<std::uint32_t>(slot));
  revision_ = orders_.revision();
  misses_ = 0;
}

void ResidentSamples::insert(const Resident& resident) {
  heap_.push_back(resident);
  bytes_ += resident.bytes;
  const auto slot = static_cast<std::uint32_t>(heap_.size() - 1);
  put(slot, resident);
  move_up(slot);
}

void ResidentSamples::erase(std::uint32_t slot) {
  slots_[heap_[slot].sample] = kNoSlot;
  bytes_ -= heap_[slot].bytes;
  const Resident last = heap_.back();
  heap_.pop_back();
  if (slot == heap_.size()) return;
  put(slot, last);
  move_up(slot);
  move_down(slots_[last.sample]);
}

void ResidentSamples::put(std::uint32_t slot, const Resident& resident) {
  heap_[slot] = resident;
  slots_[resident.sample] = slot;
}

void ResidentSamples::move_up(std::uint32_t slot) {
  const Resident moving = heap_[slot];
  while (slot > 0) {
    const std::uint32_t parent = (slot - 1) / 2;
    if (heap_[parent].next_use >= moving.next_use) break;
    put(slot, heap_[parent]);
    slot = parent;
  }
  put(slot, moving);
}

void ResidentSamples::move_down(std::uint32_t slot) {
  const Resident moving = heap_[slot];
  while (true) {
    std::size_t child = 2 * std::size_t{slot} + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].next_use > heap_[child].next_use) ++child;
    if (heap_[child].next_use <= moving.next_use) break;
    put(slot, heap_[child]);
    slot = static_cast<std::uint32_t>(child);
  }
  put(slot, moving);
}

}  // namespace sluice::cache
