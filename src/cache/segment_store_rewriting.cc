// Room for new records where others were evicted: segments are written anew without them.
//
// A record is copied to the end of the segment that is being written, as one that is added, and only then forgotten at
// its old place; the old segment goes with its last record. So a process may end anywhere within: both places have the
// same bytes under the same key, and what was evicted from a disk without holes may be found again.
#include <algorithm>
#include <limits>

#include "src/cache/rewrite_plan.h"
#include "src/cache/segment_names.h"
#include "src/cache/segment_store.h"

namespace sluice::cache {
namespace {

constexpr std::uint64_t kBlocksOfCopies = 2;  // that copies may begin: at the end of one segment, and in the next one
constexpr std::size_t kSegmentsSpared = 4;    // of kSegmentsMax: so many may be filled while one is written anew

const ClosedSegment& with_least_live_bytes(const std::vector<ClosedSegment>& segments) {
  return *std::min_element(segments.begin(), segments.end(),
                           [](const auto& a, const auto& b) { return a.live_bytes < b.live_bytes; });
}

}  // namespace

// Copies are never short of room because of what is added. Without holes a segment's room is theirs, where much of the
// disk is dead. With holes each copy makes room for the next one.
std::uint64_t SegmentStore::bytes_for_copies() const {
  if (!is_rewriting_) return 0;
  if (makes_holes_) return bytes_for_copies_with_holes(usual_record_bytes());
  return dead_bytes_ >= limits_.segment_bytes ? limits_.segment_bytes + kBlocksOfCopies * kBlockBytes : 0;
}

bool SegmentStore::has_many_segments() const { return segments_.size() + kSegmentsSpared > kSegmentsMax; }

bool SegmentStore::is_crowded() {
  std::lock_guard lock(mutex_);
  const std::uint64_t wanted_bytes =
      limits_.segment_bytes + std::max(limits_.segment_bytes, makes_holes_ ? bytes_for_copies() : 0);
  return is_rewriting_ && (counters_.bytes_on_disk + wanted_bytes > limits_.bytes || has_many_segments());
}

// With holes it is enough for any number of copies, or for none.
std::uint64_t SegmentStore::room_for_copies() const {
  const std::uint64_t room = free_bytes() - std::min(free_bytes(), kBlocksOfCopies * kBlockBytes);
  if (!makes_holes_) return room;
  return room > usual_record_bytes() ? std::numeric_limits<std::uint64_t>::max() / 2 : 0;
}

std::optional<std::uint32_t> SegmentStore::segment_to_rewrite(double live_share_max) {
  std::vector<ClosedSegment> closed;
  bool removes = true;  // the disk does, what it is told to
  for (const auto& [number, segment] : segments_) {
    removes = removes && segment.file != nullptr;
    if (number == current_ || segment.file == nullptr) continue;
    closed.push_back({number, segment.bytes, segment.live_bytes, segment.hole_bytes});
  }
  if (has_many_segments() && !closed.empty()) return with_least_live_bytes(closed).number;
  RewriteLimits limits{
      .wanted_bytes = 1, .room_bytes = room_for_copies(), .live_share_max = live_share_max, .segments_max = 1};
  if (const auto plan = plan_rewriting(closed, limits); !plan.segments.empty()) return plan.segments.front();
  // The disk was filled to its end before anything was evicted. One segment goes with what it has, and the copies of
  // later ones have its room.
  if (dead_bytes_ < limits_.segment_bytes || !removes) return std::nullopt;
  limits.room_bytes = std::numeric_limits<std::uint64_t>::max() / 2;
  const auto plan = plan_rewriting(closed, limits);
  if (!plan.segments.empty()) remove_segment(plan.segments.front());
  return std::nullopt;
}

bool SegmentStore::rewrite_one(double live_share_max, const std::stop_token& stop) {
  // 1. The cheapest segment for each byte that comes back.
  if (is_paused() || !is_crowded()) return false;
  std::uint32_t number = 0;
  std::shared_ptr<DiskFile> file;
  std::uint64_t file_bytes = 0;
  {
    std::lock_guard lock(mutex_);
    const std::size_t segments = segments_.size();
    const auto chosen = segment_to_rewrite(live_share_max);
    if (!chosen) return segments_.size() < segments;
    number = *chosen;
    file = segments_.at(number).file;
    file_bytes = segments_.at(number).bytes;
  }
  // 2. Its records are copied one by one, so that others are added between them.
  bool has_room = true;
  const auto end_of_gap = [&](std::uint64_t offset) {
    std::lock_guard lock(mutex_);
    const auto segment = segments_.find(number);
    return segment != segments_.end() && segment->second.file == file ? segment->second.gaps.end_at(offset) : offset;
  };
  const auto copy_one = [&](const ScannedRecord& record) {
    if (!has_room || record.is_gap) return;
    has_room = copy(record, number, *file) != Copied::kNoRoom;
    make_holes();
  };
  scan_segment(*file, file_bytes, stop, copy_one, end_of_gap);
  if (!has_room || stop.stop_requested()) return false;
  // 3. With its last record it has gone. Where it is damaged, or the disk does not give it, the others go with it.
  std::lock_guard lock(mutex_);
  const auto segment = segments_.find(number);
  if (segment != segments_.end() && segment->second.file == file) remove_segment(number);
  return true;
}

SegmentStore::Copied SegmentStore::copy(const ScannedRecord& record, std::uint32_t segment, const DiskFile& file) {
  const Key key{std::string(record.place), std::string(record.version)};
  const Place place = hash_of(key.place);
  const Location location{segment, record.offset, record.bytes, hash_of(key.version)};
  {
    std::lock_guard lock(mutex_);
    if (!is_at(place, location)) return Copied::kNotNeeded;
  }
  std::vector<std::uint8_t> value;
  if (const auto read = read_record(file, record.offset, record.bytes, key, value); !read.ok()) {
    std::lock_guard lock(mutex_);
    if (is_at(place, location))
      ++(read.error().code() == ErrorCode::kDataLoss ? counters_.damaged : counters_.read_errors);
    return Copied::kNotNeeded;
  }
  std::lock_guard writing(writing_);
  {
    std::lock_guard lock(mutex_);
    if (!is_at(place, location)) return Copied::kNotNeeded;
    const bool fits_there =
        (current_ != 0 || segments_.size() < kSegmentsMax) && disk_bytes_with(record.bytes) <= limits_.bytes;
    if (!fits_there) return Copied::kNoRoom;
  }
  if (!append(key, value, &location)) return Copied::kNoRoom;
  counters_.rewritten_bytes += record.bytes;
  return Copied::kYes;
}

}  // namespace sluice::cache
