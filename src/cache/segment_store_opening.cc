// Opening a store: its index is made anew from the segments.
#include "src/base/logging.h"
#include "src/cache/segment.h"
#include "src/cache/segment_names.h"
#include "src/cache/segment_store.h"

namespace sluice::cache {

OpenStore store_on(std::unique_ptr<Disk> disk, const Limits& limits, const Clock& clock) {
  const auto held = std::make_shared<std::unique_ptr<Disk>>(std::move(disk));  // functions are copied, disks are not
  return
      [held, limits, &clock](Counters& counters, const std::stop_token& stop) -> Result<std::unique_ptr<RecordStore>> {
        SLUICE_TRY(auto store, SegmentStore::open(std::move(*held), limits, clock, counters, stop));
        return std::unique_ptr<RecordStore>(std::move(store));
      };
}

Result<std::unique_ptr<SegmentStore>> SegmentStore::open(std::unique_ptr<Disk> disk, const Limits& limits,
                                                         const Clock& clock, Counters& counters,
                                                         const std::stop_token& stop) {
  SLUICE_TRY_VOID(disk->lock());
  std::unique_ptr<SegmentStore> store(new SegmentStore(std::move(disk), limits, clock, counters));
  SLUICE_TRY_VOID(store->load(stop));
  log_info("cache", "the cache's disk is open",
           {{"bytes_max", limits.bytes},
            {"bytes_on_disk", counters.bytes_on_disk.load()},
            {"records", counters.records.load()}});
  return store;
}

Result<void> SegmentStore::load(const std::stop_token& stop) {
  SLUICE_TRY(const std::vector<Disk::Entry> entries, disk_->list());
  {
    std::lock_guard lock(mutex_);
    for (const Disk::Entry& entry : entries) {
      if (const auto number = segment_number(entry.name)) segments_[*number].bytes = entry.bytes;
    }
    std::vector<std::pair<std::uint32_t, std::uint64_t>> present;
    for (const auto& [number, segment] : segments_) present.emplace_back(number, segment.bytes);
    for (const auto& [number, bytes] : present) SLUICE_TRY_VOID(load_segment(number, bytes, stop));
  }
  // Those of the process before are made once more: it may have ended before it made them all.
  make_holes();
  std::lock_guard lock(mutex_);
  count_bytes();
  shrink_to_bound();
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
    if (record.is_gap) return give_back({number, record.offset, record.bytes});
    remember(hash_of(record.place), {number, record.offset, record.bytes, hash_of(record.version)});
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
