// The disk of a node's cache: SharedRecords decides which records it holds (order/shared_records.h), SegmentStore has
// them.
//
// 1. As long as all fits that is asked for, or one job asks, nothing is evicted, and records take the whole bound.
// 2. When a record is fetched that is used sooner than one that is here, and there is no room, the disk is shared from
//    then on: records take live_bytes_max() of the bound, so that rewriting always finds room (rewrite_plan.h). What is
//    beyond that is given up, the farthest first. That is worth it where most questions find nothing: of two jobs whose
//    orders are not known one fetches about 0.8 (1 - s) of its samples from a source where the share s of them has
//    room, and 1 - s where nothing is evicted. So a disk on which more than kHitShareMost are found keeps what it has.
// 3. When no record has been worth another one's place for some epochs, as the other jobs have ended, the whole bound
//    is for records again.
// A question whose process tells no job is answered, and counts for nothing: its records are kept where room is left.
// What is decided and what is there are the same at all times but within keep(): lost records are told.
// Thread safety: all methods may be called from any thread; reclaim() from one at a time.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "src/cache/order/shared_records.h"
#include "src/cache/segment_store.h"

namespace sluice::cache {

class SharedDisk {
 public:
  // u of rewrite_plan.h. While jobs share the disk: at most five bytes are written for one that is stored. Else
  // nothing is evicted any more, and each segment is written anew once at most.
  static constexpr double kLiveShareMax = 0.8;
  static constexpr double kLiveShareMaxAlone = 0.95;
  static constexpr double kHitShareMost = 0.5;
  // Of questions for each record: after so many in which nothing was worth evicting for, it is shared no more.
  static constexpr std::uint64_t kQuestionsUntilAlone = 4;

  // Errors: as SegmentStore::open(). REQUIRES: clock and counters outlive it.
  static Result<std::unique_ptr<SharedDisk>> open(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock,
                                                  Counters& counters, const std::stop_token& stop = {});

  // For each question, found or not, on the disk or in memory before it.
  void asked(SharedRecords::Job job, const Key& key);

  bool find(const Key& key, std::vector<std::uint8_t>& value) { return store_->find(key, value); }

  // As RecordStore's. What is free of a disk that is shared is for those records alone that are wanted.
  bool is_paused() const { return store_->is_paused(); }
  std::uint64_t free_bytes() const { return is_shared_ ? 0 : store_->free_bytes(); }

  // Whether keep() would keep the record that was asked for and is not here, if it is as large as the others. Always
  // false while the disk is not shared: free_bytes() says it then.
  bool is_wanted(const Key& key);

  void keep(const Key& key, std::span<const std::uint8_t> value);

  // What keep() and is_wanted() leave to another thread: evicting and rewriting. Until nothing is left, or `stop`.
  bool wants_reclaiming() const;
  void reclaim(const std::stop_token& stop);

  bool is_shared() const { return is_shared_; }
  // That are held by what was decided; the store's are the same while nothing runs.
  std::uint64_t records() const;

 private:
  SharedDisk(std::unique_ptr<SegmentStore> store, const Limits& limits, Counters& counters);

  void take_what_is_there();
  std::uint64_t shared_bytes() const;  // live_bytes_max(); 0: the disk is too small to be shared
  std::uint32_t usual_bytes() const;
  bool trim();
  void share();
  void share_no_more();

  const std::unique_ptr<SegmentStore> store_;
  Counters& counters_;
  const std::uint64_t bound_bytes_;

  std::mutex keeping_;  // before the store's locks
  std::atomic<bool> is_shared_ = false;

  mutable std::mutex mutex_;  // after the store's locks: it is never held while the store is called
  SharedRecords records_;
  std::uint64_t questions_since_gain_ = 0;
  double hit_share_ = 0;  // of questions, the newest count most
};

// A shared disk, for the first call of what it returns. REQUIRES: the clock outlives it; the counters outlive the disk.
using OpenSharedDisk =
    std::function<Result<std::unique_ptr<SharedDisk>>(Counters& counters, const std::stop_token& stop)>;
OpenSharedDisk shared_disk_on(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock);

}  // namespace sluice::cache
