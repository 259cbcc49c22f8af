// A disk in memory that fails as told. What is on it outlives the Disk, as after the end of a process.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "src/cache/disk.h"

namespace sluice::cache::testing {

using Bytes = std::vector<std::uint8_t>;

struct DiskContent {
  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

  std::map<std::string, std::shared_ptr<Bytes>> files;
  std::uint64_t room = kNoLimit;  // bytes that may still be written; a write that needs more is done in part
  std::uint64_t until_power_loss = kNoLimit;  // bytes that may still be written; from then on nothing changes any more
  bool is_locked = false;
  bool refuses_writes = false;
  bool refuses_truncation = false;
  bool refuses_reads = false;
  bool refuses_removal = false;
  bool makes_holes = true;
  std::map<const Bytes*, std::set<std::uint64_t>> holes;  // blocks of files that were given back
  std::mutex mutex;

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [name, file] : files) sum += file->size();
    return sum;
  }
  // What the files take.
  std::uint64_t bytes_in_blocks() const {
    std::uint64_t sum = 0;
    for (const auto& [name, file] : files) {
      const auto found = holes.find(file.get());
      const std::size_t given_back = found == holes.end() ? 0 : found->second.size();
      sum += ((file->size() + kBlockBytes - 1) / kBlockBytes - given_back) * kBlockBytes;
    }
    return sum;
  }
};

class MemoryFile final : public DiskFile {
 public:
  MemoryFile(std::shared_ptr<DiskContent> disk, std::shared_ptr<Bytes> bytes)
      : disk_(std::move(disk)), bytes_(std::move(bytes)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> bytes) const override {
    std::lock_guard lock(disk_->mutex);
    if (disk_->refuses_reads) return internal_error("read: Input/output error");
    if (offset >= bytes_->size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(bytes.size(), bytes_->size() - offset);
    std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(offset), count, bytes.begin());
    return count;
  }

  Result<void> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    std::lock_guard lock(disk_->mutex);
    if (disk_->refuses_writes) return internal_error("write: Input/output error");
    const std::size_t count = std::min({std::uint64_t{bytes.size()}, disk_->room, disk_->until_power_loss});
    bytes_->resize(std::max<std::size_t>(bytes_->size(), offset + count));
    std::copy_n(bytes.begin(), count, bytes_->begin() + static_cast<std::ptrdiff_t>(offset));
    for (std::uint64_t* left : {&disk_->room, &disk_->until_power_loss})
      if (*left != DiskContent::kNoLimit) *left -= count;
    if (count < bytes.size()) return Error(ErrorCode::kResourceExhausted, "write: No space left on device");
    return {};
  }

  Result<void> truncate(std::uint64_t bytes) override {
    std::lock_guard lock(disk_->mutex);
    if (disk_->refuses_truncation || disk_->until_power_loss == 0)
      return internal_error("truncate: Input/output error");
    if (disk_->room != DiskContent::kNoLimit && bytes < bytes_->size()) disk_->room += bytes_->size() - bytes;
    bytes_->resize(bytes);
    return {};
  }

  Result<bool> make_hole(std::uint64_t offset, std::uint64_t bytes) override {
    std::lock_guard lock(disk_->mutex);
    if (!disk_->makes_holes) return false;
    if (disk_->refuses_writes || disk_->until_power_loss == 0 || offset + bytes > bytes_->size() ||
        offset % kBlockBytes != 0 || bytes % kBlockBytes != 0) {
      return internal_error("make a hole: Input/output error");
    }
    std::fill_n(bytes_->begin() + static_cast<std::ptrdiff_t>(offset), bytes, std::uint8_t{0});
    for (std::uint64_t block = offset / kBlockBytes; block < (offset + bytes) / kBlockBytes; ++block) {
      if (disk_->holes[bytes_.get()].insert(block).second && disk_->room != DiskContent::kNoLimit)
        disk_->room += kBlockBytes;
    }
    return true;
  }

 private:
  const std::shared_ptr<DiskContent> disk_;
  const std::shared_ptr<Bytes> bytes_;
};

class MemoryDisk final : public Disk {
 public:
  explicit MemoryDisk(std::shared_ptr<DiskContent> content) : content_(std::move(content)) {}
  ~MemoryDisk() override {
    if (holds_lock_) content_->is_locked = false;
  }

  Result<void> lock() override {
    if (content_->is_locked) return unavailable("the directory is in use by another process");
    content_->is_locked = holds_lock_ = true;
    return {};
  }

  Result<std::vector<Entry>> list() const override {
    std::vector<Entry> entries;
    for (const auto& [name, bytes] : content_->files) entries.push_back({name, bytes->size()});
    return entries;
  }

  Result<std::shared_ptr<DiskFile>> open(const std::string& name) override {
    const auto found = content_->files.find(name);
    if (found == content_->files.end()) return not_found("open " + name);
    return handle(found->second);
  }

  Result<std::shared_ptr<DiskFile>> create(const std::string& name) override {
    std::lock_guard lock(content_->mutex);
    if (content_->refuses_writes || content_->until_power_loss == 0) return internal_error("open " + name);
    auto [at, is_new] = content_->files.try_emplace(name, std::make_shared<Bytes>());
    if (!is_new) return Error(ErrorCode::kAlreadyExists, "open " + name);
    return handle(at->second);
  }

  Result<void> remove(const std::string& name) override {
    std::lock_guard lock(content_->mutex);
    if (content_->refuses_removal || content_->until_power_loss == 0) return internal_error("remove " + name);
    const auto found = content_->files.find(name);
    if (found == content_->files.end()) return not_found("remove " + name);
    if (content_->room != DiskContent::kNoLimit) content_->room += found->second->size();
    content_->holes.erase(found->second.get());
    content_->files.erase(found);
    return {};
  }

 private:
  Result<std::shared_ptr<DiskFile>> handle(std::shared_ptr<Bytes> bytes) {
    return std::shared_ptr<DiskFile>(std::make_shared<MemoryFile>(content_, std::move(bytes)));
  }

  const std::shared_ptr<DiskContent> content_;
  bool holds_lock_ = false;
};

}  // namespace sluice::cache::testing
