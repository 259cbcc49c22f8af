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

class FileReader {
 public:
  // A sample larger than this is a mistake in the data set, not an image.
  static constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

  virtual ~FileReader() = default;

  // Replaces `bytes` with the whole content of the file; its capacity is reused.
  // The error's message names the path.
  virtual Result<void> read(const std::string& path, std::vector<std::uint8_t>& bytes) const = 0;
};

// Reads with open, fstat and read: no mapping, so a file that shrinks meanwhile is an error and not a SIGBUS.
std::shared_ptr<const FileReader> make_system_file_reader();

}  // namespace sluice::pipeline
