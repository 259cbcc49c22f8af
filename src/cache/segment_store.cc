#include "src/cache/segment_store.h"

#include <algorithm>

#include "src/base/logging.h"
#include "src/cache/checksum.h"
#include "src/cache/segment.h"
#include "src/cache/segment_names.h"

namespace sluice::cache {
namespace {

// A segment of an earlier process that has had no hit in so many lookups per known record is of data no longer used.
constexpr std::uint64_t kLookupsPerRecordUntilUnused = 2;

std::uint64_t hash(std::string_view text) {
  return checksum({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::uint64_t in_blocks(std::uint64_t bytes) {
  constexpr std::uint64_t kBlock = SegmentStore::kBlockBytes;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

Limits with_defaults(Limits limits) {
  constexpr std::uint64_t kSegmentBytesMin = 4 << 20;
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
  const std::uint64_t place_hash = hash(key.place);
  const std::uint64_t version_hash = hash(key.version);
  Location location;
  std::shared_ptr<DiskFile> file;
  {
    std::lock_guard lock(mutex_);
    ++lookups_;
    const auto entry = index_.find(place_hash);
    if (entry == index_.end()) return false;
    if (entry->second.version_hash != version_hash) {
      forget(entry);
      return false;
    }
    location = entry->second;
    Segment& segment = segments_.at(location.segment);
    segment.is_wanted = true;
    file = segment.file;
  }
  const auto read = read_record(*file, location.offset, location.bytes, key, value);
  if (read.ok()) return true;
  ++(read.error().code() == ErrorCode::kDataLoss ? counters_.damaged : counters_.read_errors);
  std::lock_guard lock(mutex_);
  const auto entry = index_.find(place_hash);
  const bool is_same =
      entry != index_.end() && entry->second.segment == location.segment && entry->second.offset == location.offset;
  if (is_same) forget(entry);
  return false;
}

// ---- writing ----

bool SegmentStore::has_room_for(const Key& key, std::size_t value_bytes) {
  if (!has_legal_lengths(key, value_bytes)) return false;
  std::lock_guard writing(writing_);
  if (is_paused()) return false;
  std::lock_guard lock(mutex_);
  return has_room(record_bytes(key, value_bytes));
}

bool SegmentStore::is_paused() { return clock_.now() < paused_until_.load(); }

void SegmentStore::add(const Key& key, std::span<const std::uint8_t> value) {
  if (!has_legal_lengths(key, value.size())) {
    ++counters_.not_stored_full;
    return;
  }
  const std::uint64_t place_hash = hash(key.place);
  const std::uint64_t version_hash = hash(key.version);
  const std::uint64_t bytes = record_bytes(key, value.size());
  std::lock_guard writing(writing_);
  {
    std::lock_guard lock(mutex_);
    const auto entry = index_.find(place_hash);
    if (entry != index_.end() && entry->second.version_hash == version_hash) return;  // another thread was faster
    if (!has_room(bytes)) {
      ++counters_.not_stored_full;
      return;
    }
  }
  if (is_paused() || !append(encode_head(key, value), value)) {
    ++counters_.not_stored_failed;
    return;
  }
  std::lock_guard lock(mutex_);
  Segment& segment = segments_.at(current_);
  remember(place_hash, {current_, segment.bytes, bytes, version_hash});
  segment.bytes += bytes;
  segment.is_wanted = true;
  if (segment.bytes >= limits_.segment_bytes) current_ = 0;
  count_bytes();
}

bool SegmentStore::append(std::span<const std::uint8_t> head, std::span<const std::uint8_t> value) {
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
  const auto fits = [&] {
    return index_.size() < limits_.records && (current_ != 0 || segments_.size() < kSegmentsMax) &&
           disk_bytes_with(record_bytes) <= limits_.bytes;
  };
  if (fits()) return true;
  if (lookups_ < kLookupsPerRecordUntilUnused * index_.size()) return false;
  remove_unused_segments();
  return fits();
}

void SegmentStore::remove_unused_segments() {
  std::vector<std::uint32_t> unused;
  for (const auto& [number, segment] : segments_) {
    if (!segment.is_wanted && number != current_ && segment.file != nullptr) unused.push_back(number);
  }
  for (const std::uint32_t number : unused) remove_segment(number);
}

void SegmentStore::count_bytes() {
  std::uint64_t bytes = 0;
  for (const auto& [number, segment] : segments_) bytes += in_blocks(segment.bytes);
  counters_.bytes_on_disk = bytes;
  counters_.records = index_.size();
}

// ---- the index ----

void SegmentStore::remember(std::uint64_t place_hash, const Location& location) {
  if (const auto before = index_.find(place_hash); before != index_.end()) forget(before);
  if (index_.size() >= limits_.records) return;
  index_[place_hash] = location;
  segments_.at(location.segment).live_bytes += location.bytes;
}

void SegmentStore::forget(Index::iterator entry) {
  const Location location = entry->second;
  index_.erase(entry);
  Segment& segment = segments_.at(location.segment);
  segment.live_bytes -= location.bytes;
  if (segment.live_bytes == 0 && location.segment != current_) remove_segment(location.segment);
  count_bytes();
}

void SegmentStore::remove_segment(std::uint32_t number) {
  Segment& segment = segments_.at(number);
  std::erase_if(index_, [&](const auto& entry) { return entry.second.segment == number; });
  segment.live_bytes = 0;
  if (disk_->remove(segment_name(number)).ok()) {
    segments_.erase(number);
  } else {
    ++counters_.write_errors;
    segment.file = nullptr;  // not tried again, and its bytes count
  }
  count_bytes();
}

// ---- opening ----

OpenStore store_on(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock) {
  const auto held = std::make_shared<std::unique_ptr<Disk>>(std::move(disk));  // functions are copied, disks are not
  return
      [held, limits, &clock](Counters& counters, const std::stop_token& stop) -> Result<std::unique_ptr<RecordStore>> {
        SLUICE_TRY(auto store, SegmentStore::open(std::move(*held), limits, clock, counters, stop));
        log_info("cache", "the cache's disk is open",
                 {{"bytes_max", limits.bytes},
                  {"bytes_on_disk", counters.bytes_on_disk.load()},
                  {"records", counters.records.load()}});
        return std::unique_ptr<RecordStore>(std::move(store));
      };
}

Result<std::unique_ptr<SegmentStore>> SegmentStore::open(std::unique_ptr<Disk> disk, const Limits& limits,
                                                         const Clock& clock, Counters& counters,
                                                         const std::stop_token& stop) {
  SLUICE_TRY_VOID(disk->lock());
  std::unique_ptr<SegmentStore> store(new SegmentStore(std::move(disk), limits, clock, counters));
  SLUICE_TRY_VOID(store->load(stop));
  return store;
}

Result<void> SegmentStore::load(const std::stop_token& stop) {
  SLUICE_TRY(const std::vector<Disk::Entry> entries, disk_->list());
  std::lock_guard lock(mutex_);
  for (const Disk::Entry& entry : entries) {
    if (const auto number = segment_number(entry.name)) segments_[*number].bytes = entry.bytes;
  }
  count_bytes();
  shrink_to_bound();
  std::vector<std::pair<std::uint32_t, std::uint64_t>> present;
  for (const auto& [number, segment] : segments_) present.emplace_back(number, segment.bytes);
  for (const auto& [number, bytes] : present) SLUICE_TRY_VOID(load_segment(number, bytes, stop));
  count_bytes();
  return {};
}

void SegmentStore::shrink_to_bound() {
  std::vector<std::uint32_t> oldest_first;
  for (const auto& [number, segment] : segments_) oldest_first.push_back(number);
  for (const std::uint32_t number : oldest_first) {
    if (counters_.bytes_on_disk <= limits_.bytes && segments_.size() <= kSegmentsMax) return;
    remove_segment(number);
  }
}

Result<void> SegmentStore::load_segment(std::uint32_t number, std::uint64_t file_bytes, const std::stop_token& stop) {
  auto file = disk_->open(segment_name(number));
  if (!file.ok()) {
    ++counters_.read_errors;
    return {};
  }
  Segment& segment = segments_.at(number);
  segment.file = *file;
  current_ = number;  // keeps it while its records replace each other
  const auto scan = scan_segment(**file, file_bytes, stop, [&](const ScannedRecord& record) {
    remember(hash(record.place), {number, record.offset, record.bytes, hash(record.version)});
  });
  using End = SegmentScan::End;
  if (scan.end == End::kStopped) return Error(ErrorCode::kCancelled, "the cache was not needed any more");
  if (scan.end == End::kDamaged) ++counters_.damaged;
  if (scan.end == End::kFailed) ++counters_.read_errors;
  if (scan.end == End::kOtherVersion) ++counters_.other_versions;
  current_ = 0;
  if (segment.live_bytes == 0 && scan.end != End::kFailed) {
    remove_segment(number);
    return {};
  }
  if (scan.end == End::kDamaged && (*file)->truncate(scan.good_bytes).ok()) segment.bytes = scan.good_bytes;
  // Nothing is written behind what cannot be read.
  if (segment.bytes == scan.good_bytes && segment.bytes < limits_.segment_bytes) current_ = number;
  return {};
}

}  // namespace sluice::cache
