#include "src/transport/unique_fd.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

int new_descriptor() { return ::memfd_create("unique_fd_test", MFD_CLOEXEC); }

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST_CASE("a descriptor is closed by its last owner only") {
  const int fd = new_descriptor();
  {
    UniqueFd first(fd);
    CHECK(first.valid());
    UniqueFd second(std::move(first));
    CHECK(!first.valid());  // NOLINT(bugprone-use-after-move): what is left behind is the point
    UniqueFd third;
    third = std::move(second);
    CHECK(third.get() == fd);
    CHECK(is_open(fd));
  }
  CHECK(!is_open(fd));
}

TEST_CASE("what is assigned over is closed; assigning to itself is not") {
  const int old_fd = new_descriptor(), new_fd = new_descriptor();
  UniqueFd owner(old_fd);
  owner = UniqueFd(new_fd);
  CHECK(!is_open(old_fd));
  UniqueFd& itself = owner;
  owner = std::move(itself);
  CHECK(owner.get() == new_fd);
  CHECK(is_open(new_fd));
}

TEST_CASE("a released descriptor is the caller's") {
  const int fd = new_descriptor();
  {
    UniqueFd owner(fd);
    CHECK(owner.release() == fd);
    CHECK(!owner.valid());
  }
  CHECK(is_open(fd));
  const UniqueFd closes(fd);
}

TEST_CASE("resetting closes once, also what is empty") {
  UniqueFd owner(new_descriptor());
  const int fd = owner.get();
  owner.reset();
  owner.reset();
  CHECK(!is_open(fd));
  CHECK(owner.get() == -1);
}

}  // namespace
}  // namespace sluice::transport
