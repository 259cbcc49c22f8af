#include "src/cache/shared_disk.h"

#include <algorithm>

#include "src/base/logging.h"
#include "src/cache/rewrite_plan.h"

namespace sluice::cache {
namespace {

// Of the usual record. A disk is full when it has no room for such a large one: the last room that is left may be too
// small for all that come.
constexpr std::uint64_t kLarge = 2;
constexpr std::uint64_t kBytesThatLeaveHoles = 8 * kBlockBytes;  // smaller records leave ends of blocks, too
constexpr double kRecordShareWithHoles = 0.92;                   // at least, of a disk that is shared
constexpr double kRecordShareByRewriting = 0.75;
constexpr std::uint64_t kRecordsForMoreRoom = 16;          // that come until the capacity may grow by one
constexpr std::size_t kPlacesAtOnce = 1 << 15;             // some milliseconds
constexpr double kQuestionsRemembered = 1024;              // about, in the share of hits
constexpr std::uint64_t kQuestionsUntilAloneLeast = 1024;  // a disk that is nearly empty tells little

}  // namespace

Result<std::unique_ptr<SharedDisk>> SharedDisk::open(std::unique_ptr<Disk> disk, const Limits& limits,
                                                     const Clock& clock, Counters& counters,
                                                     const std::stop_token& stop) {
  SLUICE_TRY(auto store, SegmentStore::open(std::move(disk), limits, clock, counters, stop));
  std::unique_ptr<SharedDisk> shared(new SharedDisk(std::move(store), limits, counters));
  shared->take_what_is_there();
  return shared;
}

SharedDisk::SharedDisk(std::unique_ptr<SegmentStore> store, const Limits& limits, Counters& counters)
    : store_(std::move(store)),
      counters_(counters),
      bound_bytes_(limits.bytes),
      records_({.capacity_bytes = limits.bytes,
                .places = static_cast<std::uint32_t>(limits.records),
                .order_bytes = limits.order_bytes}),
      capacity_bytes_(limits.bytes) {
  store_->set_lost([this](SegmentStore::Place place) {
    std::lock_guard lock(mutex_);
    records_.lost(place);
  });
}

void SharedDisk::take_what_is_there() {
  std::vector<SegmentStore::Place> refused;
  store_->for_each([&](SegmentStore::Place place, std::uint64_t record_bytes) {
    std::lock_guard lock(mutex_);
    if (!records_.offer(place, static_cast<std::uint32_t>(record_bytes)).is_kept) refused.push_back(place);
  });
  store_->evict(refused);
}

// ---- questions ----

void SharedDisk::asked(SharedRecords::Job job, const Key& key) {
  {
    std::lock_guard lock(asking_);
    if (asked_.size() < kAskedMost) asked_.push_back({job, hash_of(key.place)});
  }
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) take_questions();
}

void SharedDisk::take_questions() {
  std::vector<Asked> asked;
  {
    std::lock_guard lock(asking_);
    asked.swap(asked_);
  }
  for (const Asked& question : asked) count(question);
}

void SharedDisk::count(const Asked& asked) {
  hit_share_ += ((records_.holds(asked.place) ? 1 : 0) - hit_share_) / kQuestionsRemembered;
  records_.asked(asked.job, asked.place);
  ++questions_since_gain_;
  if (is_full_) ++questions_while_full_;
  const std::uint64_t patience = std::max(kQuestionsUntilAlone * records_.size(), kQuestionsUntilAloneLeast);
  if (is_shared_ && questions_since_gain_ > patience) share_no_more();
}

bool SharedDisk::is_wanted(const Key& key) {
  if (is_paused()) return false;
  std::uint32_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    take_questions();
    bytes = usual_bytes();
  }
  const bool has_room = is_room_free(bytes);
  std::lock_guard lock(mutex_);
  const SharedRecords::Fit fit = records_.fit_of(hash_of(key.place), bytes, !has_room);
  is_full_ = is_full_ || !has_room;
  if (is_shared_) return has_room && fit != SharedRecords::Fit::kNot;
  return fit == SharedRecords::Fit::kByEviction && is_worth_sharing();
}

bool SharedDisk::has_room_for_usual() {
  std::uint32_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    bytes = usual_bytes();
  }
  return !is_paused() && !is_shared_ && is_room_free(bytes);
}

bool SharedDisk::is_room_free(std::uint32_t usual_bytes) {
  return store_->has_room(kLarge * usual_bytes) && (is_shared_ || store_->free_bytes() >= kLarge * usual_bytes);
}

std::uint32_t SharedDisk::usual_bytes() const {
  return records_.size() == 0 ? 0 : static_cast<std::uint32_t>(records_.bytes() / records_.size());
}

std::uint64_t SharedDisk::shared_bytes() const {
  const std::uint64_t by_rewriting = live_bytes_max(store_->usable_bytes(), store_->segment_bytes(), kLiveShareMax);
  if (by_rewriting == 0 || !store_->makes_holes()) return by_rewriting;
  const std::uint64_t usual = usual_bytes();
  const std::uint64_t room_bytes = SegmentStore::bytes_for_copies_with_holes(usual) + (kLarge + 1) * usual;
  return std::max(by_rewriting, bound_bytes_ - std::min(bound_bytes_, store_->wasted_bytes() + room_bytes));
}

// From 0.8 (1 - k s) < 1 - s: of a disk that is shared, records take the share k.
double SharedDisk::hit_share_max() const {
  const bool leave_holes = store_->makes_holes() && usual_bytes() >= kBytesThatLeaveHoles;
  const double record_share = leave_holes ? kRecordShareWithHoles : kRecordShareByRewriting;
  return 0.2 / (1 - 0.8 * record_share);
}

bool SharedDisk::is_worth_sharing() const {
  if (shared_bytes() == 0) return false;
  return questions_while_full_ >= kQuestionsUntilShared * records_.size() && hit_share_ <= hit_share_max();
}

void SharedDisk::share() {
  questions_since_gain_ = 0;
  if (is_shared_.exchange(true)) return;
  fit_capacity(0);
  log_info("cache", "jobs share the disk: what is used sooner takes the place of what is used later",
           {{"records", records_.size()}, {"record_bytes_max", shared_bytes()}});
}

// What is lost to ends of blocks comes back at once when segments are written anew. Where the capacity followed, all
// that comes would be kept for a while, used soon or late. So most of what comes still has to take another one's place.
void SharedDisk::fit_capacity(std::uint64_t more_bytes) {
  capacity_bytes_ = std::min(shared_bytes(), capacity_bytes_ + more_bytes / kRecordsForMoreRoom);
  records_.set_capacity(capacity_bytes_);
}

void SharedDisk::share_no_more() {
  is_shared_ = is_full_ = false;
  questions_while_full_ = 0;
  records_.set_capacity(capacity_bytes_ = bound_bytes_);
  log_info("cache", "no job gains by another one's room on the disk any more", {{"records", records_.size()}});
}

// ---- announcements ----

bool SharedDisk::declare(SharedRecords::Job job, std::uint64_t data_set, std::span<const SharedRecords::Place> places,
                         const Homes* homes) {
  const std::size_t samples = places.size();
  std::vector<bool> is_here;
  std::vector<SharedRecords::Place> here;
  if (homes != nullptr) {
    is_here = homes->are_here(places);
    for (std::size_t sample = 0; sample < samples; ++sample)
      if (is_here[sample]) here.push_back(places[sample]);
    places = here;
  }
  std::lock_guard announcing(announcing_);
  // In parts, as others wait for a decision meanwhile.
  for (std::size_t at = 0; at < places.size(); at += kPlacesAtOnce) {
    std::lock_guard lock(mutex_);
    records_.expect(places.subspan(at, std::min(kPlacesAtOnce, places.size() - at)));
  }
  std::lock_guard lock(mutex_);
  if (!records_.declare(job, places).ok()) return false;
  announced_.declared(job, data_set, samples, std::move(is_here));
  return true;
}

bool SharedDisk::begin_epoch(SharedRecords::Job job, std::uint64_t data_set, const EpochOrder& order) {
  std::lock_guard announcing(announcing_);
  if (!announced_.has_declared(job, data_set)) return false;
  const auto uses = announced_.uses_of(job, order);
  if (!uses.ok()) return false;
  if (uses->empty()) return true;  // of a few samples none may be here
  std::lock_guard lock(mutex_);
  return (order.is_next ? records_.announce_next_epoch(job, *uses) : records_.begin_epoch(job, *uses)).ok();
}

std::vector<SharedDisk::KeptForJob> SharedDisk::kept_for_jobs() const {
  std::map<SharedRecords::Job, double> bytes_by_job;
  {
    std::lock_guard lock(mutex_);
    bytes_by_job = records_.bytes_by_job();
  }
  std::vector<KeptForJob> kept;
  kept.reserve(bytes_by_job.size());
  std::lock_guard announcing(announcing_);
  for (const auto& [job, bytes] : bytes_by_job) kept.push_back({job, announced_.data_set_of(job), bytes});
  return kept;
}

// ---- keeping ----

void SharedDisk::keep(const Key& key, std::span<const std::uint8_t> value) {
  if (!has_legal_lengths(key, value.size()) || store_->is_paused()) return store_->add(key, value);  // counts why not
  const SegmentStore::Place place = hash_of(key.place);
  std::lock_guard keeping(keeping_);
  if (store_->has(key)) return;  // another process was faster
  const auto bytes = static_cast<std::uint32_t>(record_bytes(key, value.size()));
  const bool is_full = !store_->has_room(bytes);
  // 1. What goes for it. Another version of it is replaced.
  SharedRecords::Admission admission;
  {
    std::lock_guard lock(mutex_);
    take_questions();
    records_.lost(place);
    if (!is_shared_ && is_worth_sharing() && records_.fit_of(place, bytes, is_full) == SharedRecords::Fit::kByEviction)
      share();
    if (is_shared_) fit_capacity(bytes);
    admission = records_.offer(place, bytes);
    if (!admission.evicted.empty()) questions_since_gain_ = 0;
  }
  store_->evict(admission.evicted);
  // 2. Whether there is room for it by now.
  const bool is_there = admission.is_kept && store_->put(key, value);
  if (!admission.is_kept) ++counters_.not_stored_full;
  if (is_there) counters_.stored_bytes += bytes;
  // 3. What is not there is not held, and what was lost in between is not there.
  bool is_held = false;
  {
    std::lock_guard lock(mutex_);
    if (!is_there) records_.lost(place);
    is_held = records_.holds(place);
  }
  if (!is_held) store_->evict({&place, 1});
}

// Whether anything went.
bool SharedDisk::trim() {
  std::lock_guard keeping(keeping_);
  std::vector<SegmentStore::Place> evicted;
  {
    std::lock_guard lock(mutex_);
    if (is_shared_) fit_capacity(0);
    evicted = records_.trim();
  }
  store_->evict(evicted);
  return !evicted.empty();
}

bool SharedDisk::wants_reclaiming() const {
  if (store_->is_crowded()) return true;
  std::lock_guard lock(mutex_);
  return records_.is_over_capacity();
}

void SharedDisk::reclaim(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (trim()) continue;
    if (!store_->rewrite_one(is_shared_ ? kLiveShareMax : kLiveShareMaxAlone, stop)) return;
  }
}

std::uint64_t SharedDisk::records() const {
  std::lock_guard lock(mutex_);
  return records_.size();
}

OpenSharedDisk shared_disk_on(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock) {
  const auto held = std::make_shared<std::unique_ptr<Disk>>(std::move(disk));  // functions are copied, disks are not
  return [held, limits, &clock](Counters& counters, const std::stop_token& stop) {
    return SharedDisk::open(std::move(*held), limits, clock, counters, stop);
  };
}

}  // namespace sluice::cache
