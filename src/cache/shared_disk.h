// The disk of a node's cache: SharedRecords decides which records it holds (order/shared_records.h), SegmentStore has
// them.
//
// 1. As long as all fits that is asked for, or one job asks, nothing is evicted, and records take the whole bound.
// 2. When a record is fetched that is used sooner than one that is here, and there is no room, the disk is shared from
//    then on. Where evicted records leave holes, records take all of the bound but what is lost to the ends of blocks,
//    and room for a few that come or are copied; where the file system makes none, live_bytes_max() of it, so that
//    rewriting always finds room (rewrite_plan.h). What is beyond that is given up, the farthest first.
//    That is worth it where most questions find nothing: of two jobs whose
//    orders are not known one fetches about 0.8 (1 - s) of its samples from a source where the share s of them has
//    room, and 1 - s where nothing is evicted. So a disk on which more than hit_share_max() are found keeps what it
//    has. That shows when it has been full for a while: what is kept until then is what its jobs have just used.
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

#include "src/cache/announced_orders.h"
#include "src/cache/homes.h"
#include "src/cache/order/shared_records.h"
#include "src/cache/segment_store.h"

namespace sluice::cache {

class SharedDisk {
 public:
  // u of rewrite_plan.h. While jobs share the disk: at most five bytes are written for one that is stored. Else
  // nothing is evicted any more, and each segment is written anew once at most.
  static constexpr double kLiveShareMax = 0.8;
  static constexpr double kLiveShareMaxAlone = 0.95;
  static constexpr std::uint64_t kQuestionsUntilShared = 2;  // for each record, while it is full
  // Of questions for each record: after so many in which nothing was worth evicting for, it is shared no more.
  static constexpr std::uint64_t kQuestionsUntilAlone = 4;

  // Errors: as SegmentStore::open(). REQUIRES: clock and counters outlive it.
  static Result<std::unique_ptr<SharedDisk>> open(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock,
                                                  Counters& counters, const std::stop_token& stop = {});

  // For each question, found or not, on the disk or in memory before it.
  // Waits for no decision: where one is being made, it is taken into account with the next question.
  void asked(SharedRecords::Job job, const Key& key);

  // The places of a job's data set, under a number of its own, and an epoch of it that begins. False: it is not known,
  // or there is no room for it, and the job goes on as if it had said nothing. A rank's epoch is put to those that
  // other ranks of the job have announced. `homes`: of those that share the records; null: all are here.
  bool declare(SharedRecords::Job job, std::uint64_t data_set, std::span<const SharedRecords::Place> places,
               const Homes* homes = nullptr);
  bool begin_epoch(SharedRecords::Job job, std::uint64_t data_set, const EpochOrder& order);

  bool find(const Key& key, std::vector<std::uint8_t>& value) { return store_->find(key, value); }

  // As RecordStore's. What is free of a disk that is shared is for those records alone that are wanted.
  bool is_paused() const { return store_->is_paused(); }
  std::uint64_t free_bytes() const { return is_shared_ ? 0 : store_->free_bytes(); }

  // Whether the record that was asked for and is not here is worth sending though nothing is free, if it is as large as
  // the others. A disk becomes shared with the first such record that comes: those of a fast source never do.
  bool is_wanted(const Key& key);

  // Whether a record as large as the others has room, and none has to go for it.
  bool has_room_for_usual();

  void keep(const Key& key, std::span<const std::uint8_t> value);

  // What keep() and is_wanted() leave to another thread: evicting and rewriting. Until nothing is left, or `stop`.
  bool wants_reclaiming() const;
  void reclaim(const std::stop_token& stop);

  // What is here for a job: bytes of what it has asked for or announced, whichever job has brought it.
  struct KeptForJob {
    SharedRecords::Job job = 0;
    std::optional<std::uint64_t> data_set;  // the one that it announced last
    double bytes = 0;
  };
  std::vector<KeptForJob> kept_for_jobs() const;

  bool is_shared() const { return is_shared_; }
  // That are held by what was decided; the store's are the same while nothing runs.
  std::uint64_t records() const;

 private:
  SharedDisk(std::unique_ptr<SegmentStore> store, const Limits& limits, Counters& counters);

  struct Asked {
    SharedRecords::Job job = 0;
    SharedRecords::Place place = 0;
  };
  static constexpr std::size_t kAskedMost = 1 << 16;  // beyond that questions are forgotten

  void take_what_is_there();
  // REQUIRES, for all below: mutex_ is held.
  void take_questions();
  void count(const Asked& asked);
  void fit_capacity(std::uint64_t more_bytes);
  std::uint64_t shared_bytes() const;  // what records take of a disk that is shared; 0: it is too small for that
  std::uint32_t usual_bytes() const;
  bool is_room_free(std::uint32_t usual_bytes);  // REQUIRES: mutex_ is not held
  bool trim();
  double hit_share_max() const;
  bool is_worth_sharing() const;
  void share();
  void share_no_more();

  const std::unique_ptr<SegmentStore> store_;
  Counters& counters_;
  const std::uint64_t bound_bytes_;

  mutable std::mutex announcing_;  // before mutex_
  AnnouncedOrders announced_;

  std::mutex keeping_;  // before the store's locks
  std::atomic<bool> is_shared_ = false;

  mutable std::mutex mutex_;  // after the store's locks: it is never held while the store is called
  SharedRecords records_;
  std::uint64_t capacity_bytes_ = 0;  // of records_
  std::uint64_t questions_since_gain_ = 0;
  bool is_full_ = false;  // it was when a record was last missed, or before
  std::uint64_t questions_while_full_ = 0;
  double hit_share_ = 0;  // of questions, the newest count most

  std::mutex asking_;  // after mutex_
  std::vector<Asked> asked_;
};

// A shared disk, for the first call of what it returns. REQUIRES: the clock outlives it; the counters outlive the disk.
using OpenSharedDisk =
    std::function<Result<std::unique_ptr<SharedDisk>>(Counters& counters, const std::stop_token& stop)>;
OpenSharedDisk shared_disk_on(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock);

}  // namespace sluice::cache
