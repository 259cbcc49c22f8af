// A file reader that keeps what a slow file system gave, and reads it from the cache's disk the next time.
//
// The cache never decides whether a read succeeds: whatever it cannot give comes from the source, with the source's
// error. It opens on a thread of its own; until then, and where it cannot be opened, all reads go to the source.
// A file, or a range of one, is stored if reading it took longer than kSlowRead and kSlowReadPerByte say, and if it has
// had the same identity for kSettled: a file that is still being written may change within one tick of its file
// system's clock.
// With Keep::kTranscoded, read_image() keeps the coefficients of JPEG files in place of their bytes, however fast the
// source is (pipeline/jpeg_coefficients.h). They are of the same pixels. A file that has none, as it is damaged or of a
// rare kind, or as they would have more than kCoefficientsPerByte times its bytes, gets an empty record, so that they
// are not tried again.
// With Keep::kOutput, read_image() keeps what a pipeline's prefix makes of a file, however fast the source is. Where
// the prefix is empty, it keeps the bytes of slow files. Thread safety: all but the constructor and the destructor may
// be called from any thread.
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

enum class Keep { kSource, kTranscoded, kOutput };

class CachedFiles final : public pipeline::FileReader {
 public:
  // What a local solid-state disk needs at most: a source that is no slower gains nothing.
  static constexpr std::chrono::nanoseconds kSlowRead = std::chrono::milliseconds(1);
  static constexpr std::chrono::nanoseconds kSlowReadPerByte{2};
  static constexpr std::chrono::seconds kSettled{10};
  static constexpr std::size_t kCoefficientsPerByte = 3;

  // Files of one name space are never given to another. REQUIRES: clock outlives this.
  CachedFiles(std::shared_ptr<const pipeline::FileReader> source, std::unique_ptr<Disk> disk, const Limits& limits,
              std::string name_space, const Clock& clock, Keep keep = Keep::kSource);
  ~CachedFiles() override;

  Result<void> read(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override;
  Result<pipeline::ImageContent> read_image(const pipeline::FilePart& part, const pipeline::Prefix& prefix,
                                            std::vector<std::uint8_t>& bytes) const override;
  bool has_room_for_output(const pipeline::FilePart& part, const pipeline::Prefix& prefix,
                           const pipeline::FileIdentity& state, std::size_t bytes) const override;
  void keep_output(const pipeline::FilePart& part, const pipeline::Prefix& prefix, const pipeline::FileIdentity& state,
                   std::span<const std::uint8_t> output) const override;
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return source_->identify(path); }

  const Counters& counters() const { return counters_; }

  // True if the cache is in use, false if it could not be opened.
  bool wait_until_opened() const;

 private:
  void open(std::unique_ptr<Disk> disk, const Limits& limits, const std::stop_token& stop);
  Key key_of(std::string_view form, const pipeline::FilePart& part, const pipeline::FileIdentity& identity) const;
  Key key_of(const pipeline::Prefix& prefix, const pipeline::FilePart& part,
             const pipeline::FileIdentity& identity) const;
  Result<pipeline::ImageContent> read_coefficients(SegmentStore& store, const pipeline::FilePart& part,
                                                   const pipeline::FileIdentity& identity,
                                                   std::vector<std::uint8_t>& bytes) const;
  Result<pipeline::ImageContent> read_output(SegmentStore& store, const pipeline::FilePart& part,
                                             const pipeline::Prefix& prefix, const pipeline::FileIdentity& identity,
                                             std::vector<std::uint8_t>& bytes) const;
  bool find_source(SegmentStore& store, const Key& key, std::vector<std::uint8_t>& bytes) const;
  // Reads from the source. The time that it took.
  Result<Clock::Duration> read_source(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const;
  bool is_slow(Clock::Duration took, std::size_t bytes) const;
  // Whether the bytes that have just been read are those of the state `before`, and no later one can look like it.
  bool is_certain(const pipeline::FilePart& part, const pipeline::FileIdentity& before, std::size_t bytes) const;
  bool has_settled(const pipeline::FileIdentity& identity) const;

  const std::shared_ptr<const pipeline::FileReader> source_;
  const std::string name_space_;
  const Keep keep_;
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
