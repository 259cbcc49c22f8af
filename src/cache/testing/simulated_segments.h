// A disk of segments as bare numbers, reclaimed by rewriting: what is written for what is stored.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "src/cache/rewrite_plan.h"

namespace sluice::cache::testing {

class SimulatedSegments {
 public:
  SimulatedSegments(std::uint64_t bound_bytes, std::uint64_t segment_bytes, double live_share_max)
      : bound_bytes_(bound_bytes), segment_bytes_(segment_bytes), live_share_max_(live_share_max) {}

  // REQUIRES: it is not stored, and the live bytes stay within live_bytes_max().
  void add(std::uint32_t record, std::uint32_t bytes) {
    stored_bytes_ += bytes;
    const std::uint64_t allowed = bound_bytes_ - segment_bytes_;
    if (disk_bytes_ + bytes > allowed) reclaim(disk_bytes_ + bytes - allowed);
    append(record, bytes);
  }

  void drop(std::uint32_t record) {
    const auto found = places_.find(record);
    segments_.at(found->second.segment).live_bytes -= found->second.bytes;
    places_.erase(found);
  }

  std::uint64_t stored_bytes() const { return stored_bytes_; }
  std::uint64_t written_bytes() const { return written_bytes_; }
  std::uint64_t disk_bytes_most() const { return disk_bytes_most_; }
  std::uint64_t failed_plans() const { return failed_plans_; }

 private:
  struct Segment {
    std::uint64_t bytes = 0;
    std::uint64_t live_bytes = 0;
    std::vector<std::uint32_t> records;
  };
  struct Place {
    std::uint32_t segment = 0;
    std::uint32_t bytes = 0;
  };

  void append(std::uint32_t record, std::uint32_t bytes) {
    if (segments_.empty() || segments_[open_].bytes + bytes > segment_bytes_) ++open_;
    Segment& segment = segments_[open_];
    segment.bytes += bytes;
    segment.live_bytes += bytes;
    segment.records.push_back(record);
    places_[record] = {open_, bytes};
    written_bytes_ += bytes;
    disk_bytes_ += bytes;
    disk_bytes_most_ = std::max(disk_bytes_most_, disk_bytes_);
  }

  void reclaim(std::uint64_t wanted_bytes) {
    std::vector<ClosedSegment> closed;
    for (const auto& [number, segment] : segments_)
      if (number != open_) closed.push_back({number, segment.bytes, segment.live_bytes});
    const RewritePlan plan = plan_rewriting(
        closed,
        {.wanted_bytes = wanted_bytes, .room_bytes = bound_bytes_ - disk_bytes_, .live_share_max = live_share_max_});
    if (plan.freed_bytes < wanted_bytes) ++failed_plans_;
    for (const std::uint32_t number : plan.segments) {
      const std::vector<std::uint32_t> records = segments_.at(number).records;
      for (const std::uint32_t record : records) {
        const auto place = places_.find(record);
        if (place != places_.end() && place->second.segment == number) append(record, place->second.bytes);
      }
      disk_bytes_ -= segments_.at(number).bytes;
      segments_.erase(number);
    }
  }

  const std::uint64_t bound_bytes_;
  const std::uint64_t segment_bytes_;
  const double live_share_max_;
  std::map<std::uint32_t, Segment> segments_;
  std::unordered_map<std::uint32_t, Place> places_;
  std::uint32_t open_ = 0;
  std::uint64_t disk_bytes_ = 0;
  std::uint64_t disk_bytes_most_ = 0;
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t failed_plans_ = 0;
};

}  // namespace sluice::cache::testing
