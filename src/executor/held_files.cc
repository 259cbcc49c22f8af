#include "src/executor/held_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <system_error>

namespace sluice::executor {

HeldFiles::HeldFiles(pid_t pid) : folder_("/proc/" + std::to_string(pid) + "/fd"), files_at_first_(files()) {}

bool HeldFiles::any() {
  if (found_) return true;
  const std::size_t now = descriptors();
  if (now > 0 && now == seen_descriptors_) return false;
  seen_descriptors_ = now;
  found_ = files() > files_at_first_;
  return found_;
}

std::size_t HeldFiles::descriptors() const {
  struct stat folder {};
  return ::stat(folder_.c_str(), &folder) == 0 ? static_cast<std::size_t>(folder.st_size) : 0;
}

std::size_t HeldFiles::files() const {
  std::size_t count = 0;
  std::error_code unknown;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, unknown)) {
    struct stat found {};
    if (std::atoi(entry.path().filename().c_str()) <= STDERR_FILENO || ::stat(entry.path().c_str(), &found) != 0)
      continue;
    if (S_ISREG(found.st_mode) && found.st_nlink > 0) ++count;
  }
  return count;
}

}  // namespace sluice::executor
