// Whether a process keeps files open that it has opened since it was first seen.
//
// A look at each descriptor takes 200 microseconds for fifty of them, and batches may be as cheap. So a look is taken
// only when the number of descriptors is another one than at the last look, which the kernel tells in one. A file that
// takes the place of something that was closed is found when the number changes.
//
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>

namespace sluice::executor {

class HeldFiles {
 public:
  explicit HeldFiles(pid_t pid);

  // Files with a name, but for the standard streams; false if that cannot be told. Once there were some, it stays true.
  bool any();

 private:
  // How many it has open; 0: the kernel does not tell. Linux does since 6.2.
  std::size_t descriptors() const;
  std::size_t files() const;

  const std::filesystem::path folder_;
  const std::size_t files_at_first_;
  std::size_t seen_descriptors_ = 0;  // at the last look; 0: there was none
  bool found_ = false;
};

}  // namespace sluice::executor
