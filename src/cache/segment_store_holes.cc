// Room for new records where others are gone: their blocks go back to the disk.
//
// A gap's head takes the place of the head of its first record, so that a later start passes over it. It is written
// before the hole is made: a process may end in between. Where power fails, the hole may be on the disk and the head
// not; then the segment ends there, or a record is damaged.
#include "src/cache/segment_store.h"

namespace sluice::cache {

void SegmentStore::evict(std::span<const Place> places) {
  if (places.empty()) return;
  {
    std::lock_guard lock(mutex_);
    is_rewriting_ = true;
    for (const Place place : places) {
      const auto entry = index_.find(place);
      if (entry == index_.end()) continue;
      ++counters_.evicted;
      counters_.evicted_bytes += entry->second.bytes;
      give_back(forget(entry));
    }
  }
  make_holes();
}

void SegmentStore::give_back(const Dead& dead) {
  if (makes_holes_ && segments_.contains(dead.segment)) dead_.push_back(dead);
}

void SegmentStore::make_holes() {
  std::lock_guard making_holes(making_holes_);
  while (const auto gap = next_gap()) make_hole(*gap);
}

std::optional<SegmentStore::NewGap> SegmentStore::next_gap() {
  std::lock_guard lock(mutex_);
  if (!makes_holes_) dead_.clear();
  while (!dead_.empty()) {
    const Dead dead = dead_.back();
    dead_.pop_back();
    Segment& segment = segments_.at(dead.segment);
    if (segment.file != nullptr) return NewGap{dead.segment, segment.file, segment.gaps.add(dead.offset, dead.bytes)};
  }
  return std::nullopt;
}

void SegmentStore::make_hole(const NewGap& gap) {
  if (!gap.file->write_at(gap.change.offset, encode_gap(gap.change.bytes)).ok()) {
    ++counters_.write_errors;
    return;
  }
  if (gap.change.hole_bytes == 0) return;
  const auto made = gap.file->make_hole(gap.change.hole_offset, gap.change.hole_bytes);
  if (!made.ok()) {
    ++counters_.write_errors;
    return;
  }
  if (!*made) {
    makes_holes_ = false;
    return;
  }
  std::lock_guard lock(mutex_);
  const auto segment = segments_.find(gap.segment);
  if (segment == segments_.end() || segment->second.file != gap.file) return;  // it was removed meanwhile
  segment->second.hole_bytes += gap.change.hole_bytes;
  count_bytes();
}

}  // namespace sluice::cache
