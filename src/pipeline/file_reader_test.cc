#include "src/pipeline/file_reader.h"

#include <sys/stat.h>

#include <filesystem>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::pipeline {
namespace {

TEST_CASE("a file's bytes replace what the buffer held") {
  const testing::TemporaryDirectory folder;
  const auto reader = make_system_file_reader();
  std::vector<std::uint8_t> bytes(1000, 7);
  REQUIRE(reader->read(folder.file("short", "abc"), bytes).ok());
  CHECK(bytes == std::vector<std::uint8_t>{'a', 'b', 'c'});
  REQUIRE(reader->read(folder.file("long", std::string(200'000, 'x')), bytes).ok());
  CHECK(bytes == std::vector<std::uint8_t>(200'000, 'x'));
  REQUIRE(reader->read(folder.file("empty", ""), bytes).ok());
  CHECK(bytes.empty());
}

TEST_CASE("what cannot be read is named with the reason") {
  const testing::TemporaryDirectory folder;
  const auto reader = make_system_file_reader();
  std::vector<std::uint8_t> bytes;
  const auto missing = reader->read(folder.path.string() + "/missing.jpg", bytes);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code() == ErrorCode::kNotFound);
  CHECK(missing.error().message() == "open " + folder.path.string() + "/missing.jpg: No such file or directory");
  const auto directory = reader->read(folder.path.string(), bytes);
  REQUIRE_FALSE(directory.ok());
  CHECK(directory.error().message() == folder.path.string() + " is not a regular file");
}

TEST_CASE("a file is known by its identity, which every change of its content changes") {
  const testing::TemporaryDirectory folder;
  const auto reader = make_system_file_reader();
  const std::string path = folder.file("a", "abc");
  const auto first = reader->identify(path);
  REQUIRE(first.ok());
  CHECK(first->bytes == 3);
  CHECK(*reader->identify(path) == *first);
  CHECK_FALSE(*reader->identify(folder.file("b", "abc")) == *first);
  // The same size and the same time of modification, as after `cp -p`.
  const auto modified = std::filesystem::last_write_time(path);
  std::filesystem::rename(folder.file("c", "xyz"), path);
  std::filesystem::last_write_time(path, modified);
  const auto second = reader->identify(path);
  REQUIRE(second.ok());
  CHECK(second->modified_ns == first->modified_ns);
  CHECK_FALSE(*second == *first);
  CHECK(reader->identify(path + "/missing").error().message().starts_with("open " + path));
}

TEST_CASE("a FIFO without a writer is refused, and nothing waits for one") {
  const testing::TemporaryDirectory folder;
  const std::string path = (folder.path / "pipe.jpg").string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::vector<std::uint8_t> bytes;
  const auto refused = make_system_file_reader()->read(path, bytes);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() == path + " is not a regular file");
}

TEST_CASE("a file larger than any sample is refused before it is read") {
  const testing::TemporaryDirectory folder;
  const std::string path = folder.file("sparse", "");
  std::filesystem::resize_file(path, FileReader::kMaxFileBytes + 1);
  std::vector<std::uint8_t> bytes;
  const auto refused = make_system_file_reader()->read(path, bytes);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::pipeline
