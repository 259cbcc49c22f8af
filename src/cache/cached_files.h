// A file reader that keeps what a slow file system gave, and reads it from the cache's disk the next time.
//
// The cache never decides whether a read succeeds: whatever it cannot give comes from the source, with the source's
// error. It opens on a thread of its own; until then, and where it cannot be opened, all reads go to the source.
// A file is stored if reading it took longer than kSlowRead and kSlowReadPerByte say, and if it has had the same
// identity for kSettled: a file that is still being written may change within one tick of its file system's clock.
// Thread safety: read() and identify() may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "src/base/clock.h"
#include "src/cache/counters.h"
#include "src/cache/segment_store.h"
#include "src/pipeline/file_reader.h"

namespace sluice::cache {

class CachedFiles final : public pipeline::FileReader {
 public:
  // What a local solid-state disk needs at most: a source that is no slower gains nothing.
  static constexpr std::chrono::nanoseconds kSlowRead = std::chrono::milliseconds(1);
  static constexpr std::chrono::nanoseconds kSlowReadPerByte{2};
  static constexpr std::chrono::seconds kSettled{10};

  // Files of one name space are never given to another. REQUIRES: clock outlives this.
  CachedFiles(std::shared_ptr<const pipeline::FileReader> source, std::unique_ptr<Disk> disk, const Limits& limits,
              std::string name_space, const Clock& clock);
  ~CachedFiles() override;

  Result<void> read(const std::string& path, std::vector<std::uint8_t>& bytes) const override;
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return source_->identify(path); }

  const Counters& counters() const { return counters_; }

  // True if the cache is in use, false if it could not be opened.
  bool wait_until_opened() const;

 private:
  void open(std::unique_ptr<Disk> disk, const Limits& limits, const std::stop_token& stop);
  Key key_of(const std::string& path, const pipeline::FileIdentity& identity) const;
  void keep(const std::string& path, const pipeline::FileIdentity& before, std::span<const std::uint8_t> bytes,
            Clock::Duration took) const;
  bool has_settled(const pipeline::FileIdentity& identity) const;

  const std::shared_ptr<const pipeline::FileReader> source_;
  const std::string place_prefix_;
  const Clock& clock_;
  mutable Counters counters_;

  std::unique_ptr<SegmentStore> opened_;       // before store_ points to it
  std::atomic<SegmentStore*> store_{nullptr};  // null: not opened
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool opening_ = true;
  std::jthread opener_;  // last: it uses the rest
};

}  // namespace sluice::cache
