#include "src/cache/cached_files.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/base/logging.h"

namespace sluice::cache {
namespace {

using pipeline::FileIdentity;

// What is cached, and the version of its making: the bytes of a file as the source gives them.
constexpr std::string_view kForm = "source bytes 1";

}  // namespace

CachedFiles::CachedFiles(std::shared_ptr<const pipeline::FileReader> source, std::unique_ptr<Disk> disk,
                         const Limits& limits, std::string name_space, const Clock& clock)
    : source_(std::move(source)),
      place_prefix_(std::string(kForm) + '\0' + std::move(name_space) + '\0'),
      clock_(clock),
      opener_([this, disk = std::move(disk), limits](const std::stop_token& stop) mutable {
        open(std::move(disk), limits, stop);
      }) {}

CachedFiles::~CachedFiles() = default;

void CachedFiles::open(std::unique_ptr<Disk> disk, const Limits& limits, const std::stop_token& stop) {
  auto store = SegmentStore::open(std::move(disk), limits, clock_, counters_, stop);
  if (store.ok()) {
    opened_ = std::move(store).value();
    store_ = opened_.get();
    log_info("cache", "source files are cached",
             {{"bytes_max", limits.bytes},
              {"bytes_on_disk", counters_.bytes_on_disk.load()},
              {"files", counters_.records.load()}});
  } else if (!stop.stop_requested()) {
    log_warning("cache", "runs without the cache", {{"error", store.error().message()}});
  }
  std::lock_guard lock(mutex_);
  opening_ = false;
  changed_.notify_all();
}

bool CachedFiles::wait_until_opened() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !opening_; });
  return store_ != nullptr;
}

Result<void> CachedFiles::read(const std::string& path, std::vector<std::uint8_t>& bytes) const {
  SegmentStore* const store = store_;
  if (store == nullptr) return source_->read(path, bytes);
  const auto identity = source_->identify(path);
  if (!identity.ok()) return source_->read(path, bytes);
  if (store->find(key_of(path, *identity), bytes)) {
    ++counters_.hits;
    counters_.hit_bytes += bytes.size();
    return {};
  }
  ++counters_.misses;
  const auto started = clock_.now();
  SLUICE_TRY_VOID(source_->read(path, bytes));
  keep(path, *identity, bytes, clock_.now() - started);
  return {};
}

void CachedFiles::keep(const std::string& path, const FileIdentity& before, std::span<const std::uint8_t> bytes,
                       Clock::Duration took) const {
  if (took <= kSlowRead + kSlowReadPerByte * bytes.size()) {
    ++counters_.not_stored_fast;
    return;
  }
  // What was read is the file's state `before` only if that is its state now.
  const auto after = source_->identify(path);
  if (!after.ok() || *after != before || before.bytes != bytes.size() || !has_settled(before)) {
    ++counters_.not_stored_changing;
    return;
  }
  store_.load()->add(key_of(path, before), bytes);
}

bool CachedFiles::has_settled(const FileIdentity& identity) const {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.wall_now().time_since_epoch());
  return now.count() - std::max(identity.modified_ns, identity.changed_ns) >=
         std::chrono::nanoseconds(kSettled).count();
}

Key CachedFiles::key_of(const std::string& path, const FileIdentity& identity) const {
  const std::array<std::uint64_t, 5> numbers{identity.device, identity.inode, identity.bytes,
                                             static_cast<std::uint64_t>(identity.modified_ns),
                                             static_cast<std::uint64_t>(identity.changed_ns)};
  return {place_prefix_ + path, std::string(reinterpret_cast<const char*>(numbers.data()), sizeof(numbers))};
}

}  // namespace sluice::cache
