// The directory that a cache lives in, as the cache sees it: the seam for full, failing and lying disks.
//
// Names are of files directly in the directory. Errors carry the path and the system's reason.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.h"

namespace sluice::cache {

// In which a disk gives and takes room.
inline constexpr std::uint64_t kBlockBytes = 4096;

// Thread safety: read_at may be called from any thread, also while another thread writes or the file is removed.
class DiskFile {
 public:
  virtual ~DiskFile() = default;

  // How many bytes were read: fewer than asked for only where the file ends.
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> bytes) const = 0;
  // All of `bytes`, or an error, after which any part of them may have been written.
  virtual Result<void> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) = 0;
  virtual Result<void> truncate(std::uint64_t bytes) = 0;
  // Gives the room of these bytes back; they are zeros from then on. False: this file system cannot.
  // REQUIRES: they are whole blocks of kBlockBytes.
  virtual Result<bool> make_hole(std::uint64_t offset, std::uint64_t bytes) = 0;
};

// Thread safety: none, but for the files.
class Disk {
 public:
  struct Entry {
    std::string name;
    std::uint64_t bytes = 0;
  };

  virtual ~Disk() = default;

  // Makes the directory where there is none, and keeps every other Disk out of it for the life of this one.
  // REQUIRES: called once, before all else. Errors: Unavailable if another one has it.
  virtual Result<void> lock() = 0;
  virtual Result<std::vector<Entry>> list() const = 0;
  virtual Result<std::shared_ptr<DiskFile>> open(const std::string& name) = 0;
  // Errors: AlreadyExists.
  virtual Result<std::shared_ptr<DiskFile>> create(const std::string& name) = 0;
  virtual Result<void> remove(const std::string& name) = 0;
};

// Only the user of this process may read what it makes.
std::unique_ptr<Disk> make_system_disk(std::string directory);

}  // namespace sluice::cache
