#include "src/pipeline/file_reader.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-file-reader-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST_CASE("a file's bytes replace what the buffer held") {
  const TemporaryFolder folder;
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
  const TemporaryFolder folder;
  const auto reader = make_system_file_reader();
  std::vector<std::uint8_t> bytes;
  const auto missing = reader->read(folder.path() + "/missing.jpg", bytes);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code() == ErrorCode::kNotFound);
  CHECK(missing.error().message() == "open " + folder.path() + "/missing.jpg: No such file or directory");
  const auto directory = reader->read(folder.path(), bytes);
  REQUIRE_FALSE(directory.ok());
  CHECK(directory.error().message() == folder.path() + " is not a regular file");
}

TEST_CASE("a file larger than any sample is refused before it is read") {
  const TemporaryFolder folder;
  const std::string path = folder.file("sparse", "");
  std::filesystem::resize_file(path, FileReader::kMaxFileBytes + 1);
  std::vector<std::uint8_t> bytes;
  const auto refused = make_system_file_reader()->read(path, bytes);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::pipeline
