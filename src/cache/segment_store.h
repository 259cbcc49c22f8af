// Records in segment files of one directory, with an index in memory.
//
// Bounds: the blocks of 4 KiB of all segments together never exceed Limits::bytes; the index never has more than
// Limits::records entries of at most kIndexBytesPerRecord bytes each.
// By itself it evicts nothing to make room: where every sample is used once an epoch in a new order, no policy has more
// hits than what fits (docs/designs/cache.md). Room comes back
//   by holes in segments, where records have been replaced by newer versions or evicted (gaps.h);
//   by whole segments: of those whose records are all gone; of those written by earlier processes that this one has no
//   use for; at open(), the oldest where the bound has shrunk.
// Where several jobs ask, shared_disk.h decides what is evicted. It has segments written anew where holes bring too
// little back: ends of blocks, small records, file systems that make none (segment_store_rewriting.cc).
// A record that is damaged, or that the disk does not give, is a miss and a counted error. After a refused write
// nothing is stored for kPauseAfterFailure. Thread safety: find() and add() may be called from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <unordered_map>

#include "src/base/clock.h"
#include "src/cache/counters.h"
#include "src/cache/disk.h"
#include "src/cache/gaps.h"
#include "src/cache/record_store.h"
#include "src/cache/segment.h"

namespace sluice::cache {

struct Limits {
  std::uint64_t bytes = 0;
  std::size_t records = std::size_t{1} << 21;
  std::uint64_t segment_bytes = 0;  // after which a new one begins; 0: a 64th of `bytes`, at least 256 KiB
  std::uint64_t order_bytes = std::uint64_t{256} << 20;  // of announced orders, where jobs share the disk
};

class SegmentStore final : public RecordStore {
 public:
  static constexpr std::size_t kIndexBytesPerRecord = 64;
  static constexpr std::size_t kSegmentsMax = 256;
  static constexpr std::chrono::seconds kPauseAfterFailure{60};

  // Rebuilds the index from the segments. Errors: Unavailable if another process has the directory; those of the disk,
  // if it cannot be used at all; Cancelled by `stop`. REQUIRES: clock and counters outlive the store.
  static Result<std::unique_ptr<SegmentStore>> open(std::unique_ptr<Disk> disk, const Limits& limits,
                                                    const Clock& clock, Counters& counters,
                                                    const std::stop_token& stop = {});

  // A record of the same place and another version is given up: its source has changed.
  bool find(const Key& key, std::vector<std::uint8_t>& value) override;
  bool may_have(const Key& key) override { return has(key); }
  bool has_room_for(const Key& key, std::size_t value_bytes) override;
  bool is_paused() override;
  void add(const Key& key, std::span<const std::uint8_t> value) override;
  std::uint64_t free_bytes() const override;

  // ---- for who decides what is kept; a place is known by its hash ----
  using Place = std::uint64_t;

  // As add(). Whether the record is there now.
  bool put(const Key& key, std::span<const std::uint8_t> value);
  bool has(const Key& key);
  bool has_room(std::uint64_t record_bytes);
  void evict(std::span<const Place> places);
  void for_each(const std::function<void(Place, std::uint64_t record_bytes)>& tell);

  // `lost` is told of each record that is gone though it was not evicted. It is called with locks held, and must not
  // call the store. REQUIRES: no other thread uses the store yet.
  void set_lost(std::function<void(Place)> lost) { lost_ = std::move(lost); }

  // Whether less room is left than rewriting wants to have, which is two segments. No writing ends it where nothing was
  // evicted.
  bool is_crowded();
  // Writes one segment anew that is crowded out, without what was evicted. False: there is none, or it cannot be done
  // now. One thread at a time. `live_share_max`: u of rewrite_plan.h.
  bool rewrite_one(double live_share_max, const std::stop_token& stop);
  std::uint64_t segment_bytes() const { return limits_.segment_bytes; }
  // Whether the room of what is evicted comes back at once, all but ends of blocks. True until the disk refuses.
  bool makes_holes() const { return makes_holes_; }
  // What a disk that makes holes keeps free for its copies.
  static constexpr std::uint64_t bytes_for_copies_with_holes(std::uint64_t usual_record_bytes) {
    return 2 * usual_record_bytes + 4 * kBlockBytes;
  }
  // Of the bytes on disk, those that are of no record. Takes no lock.
  std::uint64_t wasted_bytes() const { return wasted_bytes_; }
  // Of the bound, less what the ends of blocks take and segments that the disk does not remove. Takes no lock.
  std::uint64_t usable_bytes() const { return limits_.bytes - std::min<std::uint64_t>(limits_.bytes, unusable_bytes_); }

 private:
  struct Segment {
    std::shared_ptr<DiskFile> file;  // null: cannot be read, and its bytes count
    std::uint64_t bytes = 0;
    std::uint64_t live_bytes = 0;  // of records that the index knows
    bool is_wanted = false;        // written or read by this process
    Gaps gaps;
    std::uint64_t hole_bytes = 0;
    std::uint64_t bytes_on_disk() const;
  };
  struct Dead {
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  struct NewGap {
    std::uint32_t segment = 0;
    std::shared_ptr<DiskFile> file;
    Gaps::Change change;
  };
  struct Location {
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t version_hash = 0;
  };
  using Index = std::unordered_map<std::uint64_t, Location>;  // by the hash of the place

  SegmentStore(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock, Counters& counters);

  Result<void> load(const std::stop_token& stop);
  Result<void> load_segment(std::uint32_t number, std::uint64_t file_bytes, const std::stop_token& stop);
  void shrink_to_bound();

  // REQUIRES, for all below: mutex_ is held.
  void remember(std::uint64_t place_hash, const Location& location);
  void give_back(const Dead& dead);  // with the next make_holes()
  Dead forget(Index::iterator entry);
  void remove_segment(std::uint32_t number);
  void remove_unused_segments();
  Dead lose(Index::iterator entry);
  bool is_at(Place place, const Location& location) const;
  bool makes_room(std::uint64_t record_bytes);
  bool fits(std::uint64_t record_bytes, std::uint64_t bound_bytes) const;
  std::uint64_t bytes_for_copies() const;
  std::uint64_t room_for_copies() const;
  std::uint64_t usual_record_bytes() const { return index_.empty() ? 0 : live_bytes_ / index_.size(); }
  bool has_many_segments() const;
  std::uint64_t disk_bytes_with(std::uint64_t record_bytes) const;
  void count_bytes();
  std::optional<std::uint32_t> segment_to_rewrite(double live_share_max);

  // REQUIRES: no lock is held.
  void make_holes();
  std::optional<NewGap> next_gap();
  void make_hole(const NewGap& gap);
  enum class Copied { kYes, kNotNeeded, kNoRoom };
  Copied copy(const ScannedRecord& record, std::uint32_t segment, const DiskFile& file);

  // REQUIRES, for all below: writing_ is held, and mutex_ is not.
  bool begin_segment();
  bool append(const Key& key, std::span<const std::uint8_t> value, const Location* copied_from = nullptr);
  bool write(std::span<const std::uint8_t> head, std::span<const std::uint8_t> value);
  void pause(const Error& error);

  const std::unique_ptr<Disk> disk_;
  const Limits limits_;
  const Clock& clock_;
  Counters& counters_;

  std::mutex writing_;  // one record at a time; before mutex_
  std::atomic<Clock::TimePoint> paused_until_;
  bool said_that_it_fails_ = false;

  std::mutex making_holes_;  // after writing_ and before mutex_
  std::atomic<bool> makes_holes_ = true;

  std::mutex mutex_;  // never held while the disk works, but for removals
  std::map<std::uint32_t, Segment> segments_;
  Index index_;
  std::uint32_t current_ = 0;     // the segment that is written to; 0: none
  std::uint64_t lookups_ = 0;     // since open()
  std::uint64_t live_bytes_ = 0;  // of all segments
  std::uint64_t dead_bytes_ = 0;  // of all segments
  std::vector<Dead> dead_;        // what is in no gap yet, of segments that there are
  std::atomic<std::uint64_t> unusable_bytes_ = 0;
  std::atomic<std::uint64_t> wasted_bytes_ = 0;
  bool is_rewriting_ = false;  // evict() was called: room is left for copies
  std::function<void(Place)> lost_;
};

// A store on this disk, for the first call of what it returns. REQUIRES: the clock outlives the store.
OpenStore store_on(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock);

}  // namespace sluice::cache
