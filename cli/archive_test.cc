#include "cli/archive.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::cli {
namespace {

const Clock::WallTimePoint kMade{std::chrono::seconds(1767225600)};

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  return text.str();
}

TEST_CASE("tar unpacks what was packed") {
  const testing::TemporaryDirectory folder;
  const std::string deep = std::string(120, 'd') + "/" + std::string(90, 'f');
  const std::vector<ArchiveFile> files = {
      {"empty", ""},
      {"a/one", "one\n"},
      {"a/block", std::string(512, 'b')},
      {"a/large", std::string(100000, 'c') + '\0' + "\xff"},
      {deep, "deep"},
  };
  const auto archive = tar_gz(files, kMade);
  REQUIRE(archive.ok());
  CHECK(archive->size() < 5000);
  const std::string path = folder.file("bundle.tar.gz", *archive);
  REQUIRE(std::system(("tar -xzf " + path + " -C " + folder.path.string()).c_str()) == 0);
  for (const ArchiveFile& file : files) {
    INFO(file.path.substr(0, 20));
    const auto unpacked = folder.path / file.path;
    REQUIRE(std::filesystem::exists(unpacked));
    CHECK(read(unpacked) == file.text);
    CHECK(std::filesystem::status(unpacked).permissions() ==
          (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  }
}

TEST_CASE("a path that tar has no room for is refused by its name") {
  for (const std::string& path : {std::string(101, 'a'), std::string(160, 'a') + "/b", "a/" + std::string(101, 'b')}) {
    const auto refused = tar_gz({{path, "text"}}, kMade);
    REQUIRE_FALSE(refused.ok());
    CHECK_THAT(refused.error().message(), Catch::Contains(path));
  }
}

}  // namespace
}  // namespace sluice::cli
