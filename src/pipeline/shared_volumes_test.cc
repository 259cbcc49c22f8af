// What files of shared volumes are called, by their paths, and through the file system.
#include "src/pipeline/shared_volumes.h"

#include <filesystem>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/pipeline/file_reader.h"

namespace sluice::pipeline {
namespace {

TEST_CASE("a file is called by the innermost mount that it is below") {
  struct Case {
    const char* what;
    const char* mounts;
    const char* path;
    const char* place;
  };
  for (const Case& c : {
           Case{"a file of a mount", R"({"/data": "claim-a"})", "/data/train/1.jpg", "claim-a/train/1.jpg"},
           Case{"a file of none", R"({"/data": "claim-a"})", "/tmp/1.jpg", ""},
           Case{"no mounts", "{}", "/data/1.jpg", ""},
           Case{"a path that only begins alike", R"({"/data": "claim-a"})", "/database/1.jpg", ""},
           Case{"slashes at the end", R"({"/data//": "claim-a/"})", "/data/1.jpg", "claim-a/1.jpg"},
           Case{"a mount in a mount", R"({"/data": "claim-a", "/data/val": "claim-b"})", "/data/val/1.jpg",
                "claim-b/1.jpg"},
           Case{"beside a mount in a mount", R"({"/data": "claim-a", "/data/val": "claim-b"})", "/data/value/1.jpg",
                "claim-a/value/1.jpg"},
           Case{"a mount of no name in a mount", R"({"/data": "claim-a", "/data/tmp": ""})", "/data/tmp/1.jpg", ""},
           Case{"another mount of the volume", R"({"/x": "claim-a", "/y": "claim-a"})", "/y/1.jpg", "claim-a/1.jpg"},
           Case{"a folder of the volume", R"({"/x": "claim-a", "/y": "claim-a/train"})", "/y/1.jpg",
                "claim-a/train/1.jpg"},
           Case{"the same file in the whole volume", R"({"/x": "claim-a", "/y": "claim-a/train"})", "/x/train/1.jpg",
                "claim-a/train/1.jpg"},
           Case{"a mounted file", R"({"/data/1.bin": "claim-a/all.bin"})", "/data/1.bin", "claim-a/all.bin"},
           Case{"what is no file of a mounted file", R"({"/data/1.bin": "claim-a/all.bin"})", "/data/1.bin2", ""},
           Case{"a mount at the root", R"({"/": "claim-a", "/tmp": ""})", "/data/1.jpg", "claim-a/data/1.jpg"},
           Case{"a mount below the root", R"({"/": "claim-a", "/tmp": ""})", "/tmp/1.jpg", ""},
       }) {
    INFO(c.what);
    const auto volumes = SharedVolumes::parse(c.mounts);
    REQUIRE(volumes.ok());
    CHECK(volumes->place_of(c.path) == c.place);
  }
}

TEST_CASE("a text that is no object of mounts is refused") {
  std::string many = "{";
  for (std::size_t i = 0; i <= SharedVolumes::kMountsMax; ++i)
    many += (i == 0 ? "\"/" : ", \"/") + std::to_string(i) + "\": \"a\"";
  for (const std::string& text :
       {std::string(), std::string("/data=a"), std::string("[]"), std::string("{\"/data\": 1}"),
        std::string("{\"data\": \"a\"}"), std::string("{\"/data\": null}"), many + "}",
        "{\"/" + std::string(5000, 'x') + "\": \"a\"}"}) {
    INFO(text.substr(0, 50));
    const auto volumes = SharedVolumes::parse(text);
    REQUIRE_FALSE(volumes.ok());
    CHECK(volumes.error().code() == ErrorCode::kInvalidArgument);
  }
  CHECK(SharedVolumes::parse("{}")->empty());
}

TEST_CASE("a file is called by where it lies, by whatever path it is opened") {
  const sluice::testing::TemporaryDirectory folder;
  const std::string root = std::filesystem::canonical(folder.path);
  for (const char* name : {"volume", "volume/train", "own", "elsewhere"})
    std::filesystem::create_directory(folder.path / name);
  const std::string file = folder.file("volume/train/1.jpg", "abc");
  const std::string own = folder.file("own/1.jpg", "abc");
  std::filesystem::create_symlink(own, folder.path / "volume/train/out.jpg");
  std::filesystem::create_symlink(folder.path / "volume/train", folder.path / "own/in");
  std::filesystem::create_symlink("1.jpg", folder.path / "volume/train/again.jpg");

  auto volumes =
      SharedVolumes::parse(R"({")" + root + R"(/volume": "claim-a", ")" + root + R"(/elsewhere": "claim-b"})");
  REQUIRE(volumes.ok());
  const auto reader = make_system_file_reader(*std::move(volumes));
  const auto place = [&](const std::string& path) { return reader->identify(path)->volume_place; };
  CHECK(place(file) == "claim-a/train/1.jpg");
  CHECK(place(root + "/volume/train/../train//1.jpg") == "claim-a/train/1.jpg");
  CHECK(place(root + "/volume/train/again.jpg") == "claim-a/train/1.jpg");
  CHECK(place(root + "/own/in/1.jpg") == "claim-a/train/1.jpg");
  CHECK(place(root + "/volume/train/out.jpg").empty());
  CHECK(place(own).empty());
  CHECK(make_system_file_reader()->identify(file)->volume_place.empty());
}

}  // namespace
}  // namespace sluice::pipeline
