#include "src/executor/held_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/transport/unique_fd.h"

namespace sluice::executor {
namespace {

using transport::UniqueFd;

TEST_CASE("a file with a name is held, and stays found") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder.file("numbers", "1");
  HeldFiles held(::getpid());
  CHECK(!held.any());
  {
    const UniqueFd file(::open(path.c_str(), O_RDONLY));
    CHECK(held.any());
  }
  CHECK(held.any());
  CHECK(!HeldFiles(::getpid()).any());
}

TEST_CASE("what has no name, or was open at first, is not held") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder.file("numbers", "1");
  const std::string removed = folder.file("removed", "1");
  const UniqueFd at_first(::open(path.c_str(), O_RDONLY));
  HeldFiles held(::getpid());
  const UniqueFd memory(::memfd_create("numbers", 0)), file(::open(removed.c_str(), O_RDONLY));
  std::filesystem::remove(removed);
  CHECK(!held.any());
}

TEST_CASE("a file is found among many that were open at first") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder.file("numbers", "1");
  std::vector<UniqueFd> many;
  many.reserve(50);
  for (int i = 0; i < 50; ++i) many.emplace_back(::open(path.c_str(), O_RDONLY));
  HeldFiles held(::getpid());
  CHECK(!held.any());
  CHECK(!held.any());
  const UniqueFd another(::open(path.c_str(), O_RDONLY));
  CHECK(held.any());
}

TEST_CASE("of a process that is gone nothing is known") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  CHECK(!HeldFiles(child).any());
}

}  // namespace
}  // namespace sluice::executor
