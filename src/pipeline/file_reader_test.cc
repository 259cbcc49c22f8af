#include "src/pipeline/file_reader.h"

#include <sys/stat.h>

#include <filesystem>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::pipeline {
namespace {

TEST_CASE("a file's bytes replace what the buffer held") {
  const sluice::testing::TemporaryDirectory folder;
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
  const sluice::testing::TemporaryDirectory folder;
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
  const sluice::testing::TemporaryDirectory folder;
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
  const sluice::testing::TemporaryDirectory folder;
  const std::string path = (folder.path / "pipe.jpg").string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::vector<std::uint8_t> bytes;
  const auto refused = make_system_file_reader()->read(path, bytes);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message() == path + " is not a regular file");
}

TEST_CASE("a range of a file is read, and nothing around it") {
  const sluice::testing::TemporaryDirectory folder;
  const auto reader = make_system_file_reader();
  const std::string path = folder.file("shard.tar", "0123456789");
  const FileIdentity identity = *reader->identify(path);
  std::vector<std::uint8_t> bytes(100, 7);
  const auto read = [&](std::uint64_t offset, std::uint64_t length, std::uint64_t file_bytes, std::int64_t modified) {
    return reader->read({path, {offset, length, file_bytes, modified}}, bytes);
  };
  REQUIRE(read(3, 4, 10, identity.modified_ns).ok());
  CHECK(bytes == std::vector<std::uint8_t>{'3', '4', '5', '6'});
  REQUIRE(read(10, 0, 10, identity.modified_ns).ok());
  CHECK(bytes.empty());

  const auto behind = read(8, 3, 10, identity.modified_ns);
  REQUIRE_FALSE(behind.ok());
  CHECK(behind.error().code() == ErrorCode::kDataLoss);
  const auto large = read(8, FileReader::kMaxFileBytes + 1, 10, identity.modified_ns);
  REQUIRE_FALSE(large.ok());
  CHECK_THAT(large.error().message(), Catch::StartsWith(path + " at 8 has 1073741825 bytes, more than"));
}

TEST_CASE("a range of a file that has changed since its index was made is not read") {
  const sluice::testing::TemporaryDirectory folder;
  const auto reader = make_system_file_reader();
  const std::string path = folder.file("shard.tar", "0123456789");
  const FileIdentity identity = *reader->identify(path);
  std::vector<std::uint8_t> bytes;
  for (const auto& [file_bytes, modified] : {std::pair<std::uint64_t, std::int64_t>{11, identity.modified_ns},
                                             std::pair<std::uint64_t, std::int64_t>{10, identity.modified_ns + 1}}) {
    const auto refused = reader->read({path, {3, 4, file_bytes, modified}}, bytes);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code() == ErrorCode::kDataLoss);
    CHECK(refused.error().message() == path + " has changed since its index was made");
  }
}

TEST_CASE("a file larger than any sample is refused before it is read") {
  const sluice::testing::TemporaryDirectory folder;
  const std::string path = folder.file("sparse", "");
  std::filesystem::resize_file(path, FileReader::kMaxFileBytes + 1);
  std::vector<std::uint8_t> bytes;
  const auto refused = make_system_file_reader()->read(path, bytes);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::pipeline
