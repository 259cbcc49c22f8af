// A file system in memory whose reads take the time that a test says.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "src/base/testing/manual_clock.h"
#include "src/cache/testing/memory_disk.h"
#include "src/pipeline/file_reader.h"

namespace sluice::cache::testing {

// Files whose reading takes the clock's time. Identities are those of a real file system: every change has a new time.
class SlowFiles final : public pipeline::FileReader {
 public:
  explicit SlowFiles(sluice::testing::ManualClock& clock) : clock_(clock) {}

  void write(const std::string& path, Bytes bytes) {
    const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.wall_now().time_since_epoch());
    identities_[path] = {1, ++inode_, bytes.size(), now.count(), now.count()};
    files_[path] = std::move(bytes);
  }

  // As a file server does that goes back to a snapshot: the old times and inodes are there again.
  std::pair<std::map<std::string, Bytes>, std::map<std::string, pipeline::FileIdentity>> snapshot() const {
    return {files_, identities_};
  }
  void go_back_to(
      const std::pair<std::map<std::string, Bytes>, std::map<std::string, pipeline::FileIdentity>>& snapshot) {
    std::tie(files_, identities_) = snapshot;
  }

  Result<void> read(const pipeline::FilePart& part, Bytes& bytes) const override {
    ++reads;
    clock_.advance(takes);
    if (while_reading) while_reading();
    const auto found = files_.find(part.path);
    if (found == files_.end()) return not_found("open " + part.path);
    bytes = found->second;
    if (!part.range) return {};
    if (!part.range->is_of(identities_.at(part.path))) return Error(ErrorCode::kDataLoss, "has changed");
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(part.range->offset);
    bytes = Bytes(begin, begin + static_cast<std::ptrdiff_t>(part.range->bytes));
    return {};
  }
  Result<pipeline::FileIdentity> identify(const std::string& path) const override {
    const auto found = identities_.find(path);
    if (found == identities_.end()) return not_found("stat " + path);
    pipeline::FileIdentity identity = found->second;
    identity.volume_place = volumes.place_of(path);
    return identity;
  }

  std::shared_ptr<pipeline::ReadAhead> read_ahead(const PartOf& part, std::size_t parts,
                                                  const pipeline::Prefix& /*prefix*/) const override {
    for (std::size_t i = 0; i < parts; ++i) ahead.push_back(part(i).name());
    return nullptr;
  }

  mutable std::vector<std::string> ahead;  // what was to be read ahead
  pipeline::SharedVolumes volumes;
  std::chrono::nanoseconds takes = std::chrono::milliseconds(50);
  std::function<void()> while_reading;
  mutable std::atomic<int> reads = 0;

 private:
  sluice::testing::ManualClock& clock_;
  std::uint64_t inode_ = 0;
  std::map<std::string, Bytes> files_;
  std::map<std::string, pipeline::FileIdentity> identities_;
};

}  // namespace sluice::cache::testing
