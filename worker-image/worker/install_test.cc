#include "worker-image/worker/install.h"

#include <cstdlib>
#include <fstream>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

struct Tree : testing::TemporaryDirectory {
  std::string read(const std::string& name) const {
    std::ifstream in(path / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_CASE("the bundle is copied whole, with its permissions, over an older one") {
  const Tree tree;
  tree.file("bundle/bin/sluice-worker", "program");
  tree.file("bundle/lib/libx.so", "library");
  tree.file("bundle/python/sluice/deep/module.py", "module");
  fs::permissions(tree.path / "bundle/bin/sluice-worker", fs::perms(0755));
  tree.file("target/lib/libx.so", "older");
  const auto bundle = bundle_of(tree.path / "bundle/bin/sluice-worker");
  REQUIRE(bundle.ok());
  REQUIRE(install_bundle(*bundle, tree.path / "target").ok());
  CHECK(tree.read("target/bin/sluice-worker") == "program");
  CHECK(tree.read("target/lib/libx.so") == "library");
  CHECK(tree.read("target/python/sluice/deep/module.py") == "module");
  CHECK((fs::status(tree.path / "target/bin/sluice-worker").permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK(!fs::exists(tree.path / "target/lib/libx.so.new"));
}

TEST_CASE("an open file keeps its old content") {
  const Tree tree;
  tree.file("bundle/bin/sluice-worker", "new");
  tree.file("bundle/lib/libx.so", "new");
  tree.file("target/lib/libx.so", "old");
  std::ifstream open_file(tree.path / "target/lib/libx.so");
  REQUIRE(install_bundle(tree.path / "bundle", tree.path / "target").ok());
  std::string content;
  open_file >> content;
  CHECK(content == "old");
  CHECK(tree.read("target/lib/libx.so") == "new");
}

TEST_CASE("a program outside of a bundle, or a target that cannot be written, is named") {
  const Tree tree;
  tree.file("alone/sluice-worker", "program");
  CHECK_THAT(bundle_of(tree.path / "alone/sluice-worker").error().message(), Catch::Contains("alone/sluice-worker"));
  tree.file("bundle/bin/sluice-worker", "program");
  tree.file("target", "a file, not a directory");
  const auto result = install_bundle(tree.path / "bundle", tree.path / "target");
  REQUIRE(!result.ok());
  CHECK_THAT(result.error().message(), Catch::Contains("target"));
}

}  // namespace
}  // namespace sluice::worker
