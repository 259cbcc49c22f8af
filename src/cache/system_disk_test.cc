#include <sys/stat.h>

#include <algorithm>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/base/testing/temporary_directory.h"
#include "src/cache/segment_store.h"
#include "src/cache/testing/store_fixture.h"

namespace sluice::cache {
namespace {

using testing::Bytes;

TEST_CASE("a file is written and read in places, cut and removed") {
  const sluice::testing::TemporaryDirectory folder;
  const auto disk = make_system_disk((folder.path / "new").string());
  REQUIRE(disk->lock().ok());
  const auto file = disk->create("a");
  REQUIRE(file.ok());
  CHECK(disk->create("a").error().code() == ErrorCode::kAlreadyExists);
  REQUIRE((*file)->write_at(2, Bytes{1, 2, 3}).ok());
  Bytes bytes(10, 9);
  REQUIRE(*(*file)->read_at(1, bytes) == 4);
  CHECK(Bytes(bytes.begin(), bytes.begin() + 4) == Bytes{0, 1, 2, 3});
  REQUIRE((*file)->truncate(3).ok());
  REQUIRE(disk->open("a").ok());
  CHECK(*(*disk->open("a"))->read_at(0, bytes) == 3);
  const auto entries = disk->list();
  REQUIRE(entries.ok());
  const auto found =
      std::find_if(entries->begin(), entries->end(), [](const auto& entry) { return entry.name == "a"; });
  REQUIRE(found != entries->end());
  CHECK(found->bytes == 3);
  REQUIRE(disk->remove("a").ok());
  CHECK(*(*file)->read_at(0, bytes) == 3);  // as long as it is open
  CHECK(disk->open("a").error().code() == ErrorCode::kNotFound);
  CHECK(disk->remove("a").error().code() == ErrorCode::kNotFound);
  struct stat status {};
  REQUIRE(::stat((folder.path / "new").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE("a hole gives its blocks back, and is zeros") {
  const sluice::testing::TemporaryDirectory folder;
  const auto disk = make_system_disk(folder.path.string());
  REQUIRE(disk->lock().ok());
  const auto file = disk->create("a");
  REQUIRE(file.ok());
  REQUIRE((*file)->write_at(0, Bytes(8 * kBlockBytes, 7)).ok());
  const auto blocks = [&] {
    struct stat status {};
    REQUIRE(::stat((folder.path / "a").c_str(), &status) == 0);
    CHECK(static_cast<std::uint64_t>(status.st_size) == 8 * kBlockBytes);
    return static_cast<std::uint64_t>(status.st_blocks) * 512 / kBlockBytes;
  };
  const std::uint64_t before = blocks();
  const auto made = (*file)->make_hole(2 * kBlockBytes, 3 * kBlockBytes);
  REQUIRE(made.ok());
  if (!*made) {
    WARN("this file system makes no holes");
    return;
  }
  CHECK(blocks() == before - 3);
  Bytes bytes(8 * kBlockBytes);
  REQUIRE(*(*file)->read_at(0, bytes) == bytes.size());
  for (std::size_t at = 0; at < bytes.size(); ++at)
    if (bytes[at] != (at / kBlockBytes >= 2 && at / kBlockBytes < 5 ? 0 : 7)) FAIL(at);
}

TEST_CASE("a directory is locked against a second Disk for as long as the first lives") {
  const sluice::testing::TemporaryDirectory folder;
  auto first = make_system_disk(folder.path.string());
  REQUIRE(first->lock().ok());
  const auto refused = make_system_disk(folder.path.string())->lock();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error() == unavailable(folder.path.string() + " is in use by another process"));
  first.reset();
  CHECK(make_system_disk(folder.path.string())->lock().ok());
}

TEST_CASE("a directory that cannot be is named with the reason") {
  const sluice::testing::TemporaryDirectory folder;
  const std::string file = folder.file("a", "");
  CHECK(make_system_disk(file + "/b")->lock().error().message() == "make directory " + file + "/b: Not a directory");
  CHECK_FALSE(make_system_disk("/proc/sluice")->lock().ok());
}

TEST_CASE("the blocks of all files stay within one per cent of the bound, and most of it is used") {
  const sluice::testing::TemporaryDirectory folder;
  const sluice::testing::ManualClock clock;
  constexpr std::uint64_t kBound = 8 << 20;
  Counters counters;
  auto store = SegmentStore::open(make_system_disk(folder.path.string()), {.bytes = kBound}, clock, counters);
  REQUIRE(store.ok());
  for (int i = 0; i < 500; ++i) (*store)->add(testing::key_of(i), testing::value_of(testing::key_of(i), 30'000));
  std::uint64_t blocks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    struct stat status {};
    REQUIRE(::stat(entry.path().c_str(), &status) == 0);
    blocks += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  CHECK(blocks <= kBound * 101 / 100);
  CHECK(blocks >= kBound * 99 / 100);
  CHECK(counters.bytes_on_disk <= kBound);
  Bytes value;
  REQUIRE((*store)->find(testing::key_of(0), value));
  CHECK(value == testing::value_of(testing::key_of(0), 30'000));
}

}  // namespace
}  // namespace sluice::cache
