// Texts as files of a .tar.gz, in memory.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"

namespace sluice::cli {

struct ArchiveFile {
  std::string path;  // at most 255 characters, of which the last slash is among the first 155
  std::string text;
};

// For the owner's eyes alone (mode 0600), of the time `made`. Errors: InvalidArgument for a path that is too long.
Result<std::string> tar_gz(const std::vector<ArchiveFile>& files, Clock::WallTimePoint made);

}  // namespace sluice::cli
