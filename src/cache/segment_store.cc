#include "src/cache/segment_store.h"

#include <algorithm>

#include "src/base/checksum.h"
#include "src/base/logging.h"
#include "src/cache/segment.h"
#include "src/cache/segment_names.h"

namespace sluice::cache {
namespace {

// A segment of an earlier process that has had no hit in so many lookups per known record is of data no longer used.
constexpr std::uint64_t kLookupsPerRecordUntilUnused = 2;

std::uint64_t in_blocks(std::uint64_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

Limits with_defaults(Limits limits) {
  constexpr std::uint64_t kSegmentBytesMin = 256 << 10;
  if (limits.segment_bytes == 0) limits.segment_bytes = std::max(limits.bytes / 64, kSegmentBytesMin);
  return limits;
}

}  // namespace

SegmentStore::SegmentStore(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock, Counters& counters)
    : disk_(std::move(disk)),
      limits_(with_defaults(limits)),
      clock_(clock),
      counters_(counters),
      paused_until_(clock.now()) {}

// ---- reading ----

bool SegmentStore::find(const Key& key, std::vector<std::uint8_t>& value) {
  const std::uint64_t place_hash = hash_of(key.place);
  const std::uint64_t version_hash = hash_of(key.version);
  Location location;
  std::shared_ptr<DiskFile> file;
  {
    std::lock_guard lock(mutex_);
    ++lookups_;
    const auto entry = index_.find(place_hash);
    if (entry == index_.end()) return false;
    if (entry->second.version_hash == version_hash) {
      location = entry->second;
      Segment& segment = segments_.at(location.segment);
      segment.is_wanted = true;
      file = segment.file;
    } else {
      give_back(lose(entry));
    }
  }
  if (file != nullptr) {
    const auto read = read_record(*file, location.offset, location.bytes, key, value);
    if (read.ok()) return true;
    std::lock_guard lock(mutex_);
    if (!is_at(place_hash, location)) return false;  // it was evicted while it was read
    const bool is_damaged = read.error().code() == ErrorCode::kDataLoss;
    ++(is_damaged ? counters_.damaged : counters_.read_errors);
    const Dead dead = lose(index_.find(place_hash));
    if (is_damaged) give_back(dead);  // else a later process may be able to read it
  }
  make_holes();
  return false;
}

bool SegmentStore::has(const Key& key) {
  std::lock_guard lock(mutex_);
  const auto entry = index_.find(hash_of(key.place));
  return entry != index_.end() && entry->second.version_hash == hash_of(key.version);
}

void SegmentStore::for_each(const std::function<void(Place, std::uint64_t)>& tell) {
  std::lock_guard lock(mutex_);
  for (const auto& [place, location] : index_) tell(place, location.bytes);
}

// ---- writing ----

bool SegmentStore::has_room_for(const Key& key, std::size_t value_bytes) {
  if (!has_legal_lengths(key, value_bytes)) return false;
  std::lock_guard writing(writing_);
  return !is_paused() && has_room(record_bytes(key, value_bytes));
}

bool SegmentStore::is_paused() { return clock_.now() < paused_until_.load(); }

void SegmentStore::add(const Key& key, std::span<const std::uint8_t> value) { static_cast<void>(put(key, value)); }

bool SegmentStore::put(const Key& key, std::span<const std::uint8_t> value) {
  if (!has_legal_lengths(key, value.size())) {
    ++counters_.not_stored_full;
    return false;
  }
  std::lock_guard writing(writing_);
  if (has(key)) return true;  // another thread was faster
  if (!has_room(record_bytes(key, value.size()))) {
    ++counters_.not_stored_full;
    return false;
  }
  if (is_paused() || !append(key, value)) {
    ++counters_.not_stored_failed;
    return false;
  }
  make_holes();  // another version of it may have been here
  return true;
}

// Writes a record behind the others, and remembers it; not a copy of one that has been forgotten meanwhile.
bool SegmentStore::append(const Key& key, std::span<const std::uint8_t> value, const Location* copied_from) {
  if (!write(encode_head(key, value), value)) return false;
  const std::uint64_t bytes = record_bytes(key, value.size());
  std::lock_guard lock(mutex_);
  Segment& segment = segments_.at(current_);
  const Place place = hash_of(key.place);
  const Location location{current_, segment.bytes, bytes, hash_of(key.version)};
  if (copied_from == nullptr || is_at(place, *copied_from)) remember(place, location);
  segment.bytes += bytes;
  segment.is_wanted = true;
  if (segment.bytes >= limits_.segment_bytes) current_ = 0;
  count_bytes();
  return true;
}

bool SegmentStore::write(std::span<const std::uint8_t> head, std::span<const std::uint8_t> value) {
  if (current_ == 0 && !begin_segment()) return false;
  std::shared_ptr<DiskFile> file;
  std::uint64_t offset = 0;
  {
    std::lock_guard lock(mutex_);
    file = segments_.at(current_).file;
    offset = segments_.at(current_).bytes;
  }
  auto written = file->write_at(offset, head);
  if (written.ok()) written = file->write_at(offset + head.size(), value);
  if (written.ok()) return true;
  pause(written.error());
  if (file->truncate(offset).ok()) return false;
  // What lies behind its last record may be anything: nothing more is written there, and it counts whole.
  std::lock_guard lock(mutex_);
  const std::uint32_t number = std::exchange(current_, 0);
  Segment& segment = segments_.at(number);
  segment.bytes += head.size() + value.size();
  if (segment.live_bytes == 0) remove_segment(number);
  count_bytes();
  return false;
}

bool SegmentStore::begin_segment() {
  std::uint32_t number = 0;
  {
    std::lock_guard lock(mutex_);
    number = segments_.empty() ? 1 : segments_.rbegin()->first + 1;
    while (number == 0 || segments_.contains(number)) ++number;  // a file's name may say any number
  }
  auto file = disk_->create(segment_name(number));
  if (!file.ok()) {
    pause(file.error());
    return false;
  }
  if (const auto written = (*file)->write_at(0, segment_head()); !written.ok()) {
    pause(written.error());
    static_cast<void>(disk_->remove(segment_name(number)));
    return false;
  }
  std::lock_guard lock(mutex_);
  segments_[number] = {std::move(file).value(), kSegmentHeadBytes, 0, true};
  current_ = number;
  count_bytes();
  return true;
}

std::uint64_t SegmentStore::free_bytes() const {
  return limits_.bytes - std::min<std::uint64_t>(limits_.bytes, counters_.bytes_on_disk);
}

void SegmentStore::pause(const Error& error) {
  ++counters_.write_errors;
  paused_until_ = clock_.now() + kPauseAfterFailure;
  if (!std::exchange(said_that_it_fails_, true))
    log_warning("cache", "the disk refuses what is to be kept; the job goes on", {{"error", error.message()}});
}

// ---- room ----

std::uint64_t SegmentStore::disk_bytes_with(std::uint64_t record_bytes) const {
  const std::uint64_t begun = current_ == 0 ? 0 : segments_.at(current_).bytes;
  const std::uint64_t end = (begun == 0 ? kSegmentHeadBytes : begun) + record_bytes;
  return counters_.bytes_on_disk - in_blocks(begun) + in_blocks(end);
}

bool SegmentStore::has_room(std::uint64_t record_bytes) {
  std::lock_guard lock(mutex_);
  return makes_room(record_bytes);
}

bool SegmentStore::fits(std::uint64_t record_bytes, std::uint64_t bound_bytes) const {
  return index_.size() < limits_.records && (current_ != 0 || segments_.size() < kSegmentsMax) &&
         disk_bytes_with(record_bytes) <= bound_bytes;
}

bool SegmentStore::makes_room(std::uint64_t record_bytes) {
  const std::uint64_t bound_bytes = limits_.bytes - std::min(limits_.bytes, bytes_for_copies());
  if (fits(record_bytes, bound_bytes)) return true;
  if (lookups_ < kLookupsPerRecordUntilUnused * index_.size()) return false;
  remove_unused_segments();
  return fits(record_bytes, bound_bytes);
}

void SegmentStore::remove_unused_segments() {
  std::vector<std::uint32_t> unused;
  for (const auto& [number, segment] : segments_) {
    if (!segment.is_wanted && number != current_ && segment.file != nullptr) unused.push_back(number);
  }
  for (const std::uint32_t number : unused) remove_segment(number);
}

std::uint64_t SegmentStore::Segment::bytes_on_disk() const { return in_blocks(bytes) - hole_bytes; }

void SegmentStore::count_bytes() {
  std::uint64_t bytes = 0, live_bytes = 0, dead_bytes = 0, unusable_bytes = 0;
  for (const auto& [number, segment] : segments_) {
    bytes += segment.bytes_on_disk();
    live_bytes += segment.live_bytes;
    dead_bytes += segment.bytes - segment.live_bytes - std::min(segment.hole_bytes, segment.bytes - segment.live_bytes);
    unusable_bytes += in_blocks(segment.bytes) - (segment.file != nullptr ? segment.bytes : 0);
  }
  unusable_bytes_ = unusable_bytes;
  wasted_bytes_ = bytes - live_bytes;
  live_bytes_ = live_bytes;
  dead_bytes_ = dead_bytes;
  counters_.bytes_on_disk = bytes;
  counters_.records = index_.size();
}

// ---- the index ----

void SegmentStore::remember(std::uint64_t place_hash, const Location& location) {
  if (const auto before = index_.find(place_hash); before != index_.end()) give_back(forget(before));
  if (index_.size() >= limits_.records) return give_back({location.segment, location.offset, location.bytes});
  index_[place_hash] = location;
  segments_.at(location.segment).live_bytes += location.bytes;
}

SegmentStore::Dead SegmentStore::forget(Index::iterator entry) {
  const Location location = entry->second;
  index_.erase(entry);
  Segment& segment = segments_.at(location.segment);
  segment.live_bytes -= location.bytes;
  if (segment.live_bytes == 0 && location.segment != current_) remove_segment(location.segment);
  count_bytes();
  return {location.segment, location.offset, location.bytes};
}

SegmentStore::Dead SegmentStore::lose(Index::iterator entry) {
  const Place place = entry->first;
  const Dead dead = forget(entry);
  if (lost_) lost_(place);
  return dead;
}

bool SegmentStore::is_at(Place place, const Location& location) const {
  const auto entry = index_.find(place);
  return entry != index_.end() && entry->second.segment == location.segment && entry->second.offset == location.offset;
}

void SegmentStore::remove_segment(std::uint32_t number) {
  Segment& segment = segments_.at(number);
  std::erase_if(index_, [&](const auto& entry) {
    if (entry.second.segment != number) return false;
    if (lost_) lost_(entry.first);
    return true;
  });
  segment.live_bytes = 0;
  std::erase_if(dead_, [&](const Dead& dead) { return dead.segment == number; });
  if (disk_->remove(segment_name(number)).ok()) {
    segments_.erase(number);
  } else {
    ++counters_.write_errors;
    segment.file = nullptr;  // not tried again, and its bytes count
  }
  count_bytes();
}

}  // namespace sluice::cache
