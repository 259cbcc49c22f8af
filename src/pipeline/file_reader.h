// The file system as the pipeline sees it: the seam that lets tests hand in damaged files and failing disks.
//
// Thread safety: implementations may be used from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/result.h"

namespace sluice::pipeline {

// Two files, or two states of one file, differ in one of these, unless one state followed the other within a tick of
// the file system's clock.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // Unix time, by the file system's clock
  std::int64_t changed_ns = 0;   // of the inode: no program can set it

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

class FileReader {
 public:
  // A sample larger than this is a mistake in the data set, not an image.
  static constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

  virtual ~FileReader() = default;

  // Replaces `bytes` with the whole content of the file; its capacity is reused.
  // The error's message names the path.
  virtual Result<void> read(const std::string& path, std::vector<std::uint8_t>& bytes) const = 0;

  // Of the file that `path` names now, without reading it. It is opened, as for a read: network file systems look for
  // changes then, and answer a mere stat from memory. The error's message names the path.
  virtual Result<FileIdentity> identify(const std::string& path) const = 0;
};

// Reads with open, fstat and read: no mapping, so a file that shrinks meanwhile is an error and not a SIGBUS.
std::shared_ptr<const FileReader> make_system_file_reader();

}  // namespace sluice::pipeline
