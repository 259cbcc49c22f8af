#include "worker-image/worker/install.h"

#include <cstdlib>
#include <fstream>

#include "src/base/testing/catch.h"

namespace sluice::worker {
namespace {

namespace fs = std::filesystem;

struct Tree {
  fs::path root;
  Tree() {
    std::string pattern = (fs::temp_directory_path() / "install_test.XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    root = pattern;
  }
  ~Tree() { fs::remove_all(root); }

  void write(const std::string& name, const std::string& content) const {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << content;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(root / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_CASE("the bundle is copied whole, with its permissions, over an older one") {
  const Tree tree;
  tree.write("bundle/bin/sluice-worker", "program");
  tree.write("bundle/lib/libx.so", "library");
  tree.write("bundle/python/sluice/deep/module.py", "module");
  fs::permissions(tree.root / "bundle/bin/sluice-worker", fs::perms(0755));
  tree.write("target/lib/libx.so", "older");
  const auto bundle = bundle_of(tree.root / "bundle/bin/sluice-worker");
  REQUIRE(bundle.ok());
  REQUIRE(install_bundle(*bundle, tree.root / "target").ok());
  CHECK(tree.read("target/bin/sluice-worker") == "program");
  CHECK(tree.read("target/lib/libx.so") == "library");
  CHECK(tree.read("target/python/sluice/deep/module.py") == "module");
  CHECK((fs::status(tree.root / "target/bin/sluice-worker").permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK(!fs::exists(tree.root / "target/lib/libx.so.new"));
}

TEST_CASE("a file that somebody has open keeps its old content") {
  const Tree tree;
  tree.write("bundle/bin/sluice-worker", "new");
  tree.write("bundle/lib/libx.so", "new");
  tree.write("target/lib/libx.so", "old");
  std::ifstream open_file(tree.root / "target/lib/libx.so");
  REQUIRE(install_bundle(tree.root / "bundle", tree.root / "target").ok());
  std::string content;
  open_file >> content;
  CHECK(content == "old");
  CHECK(tree.read("target/lib/libx.so") == "new");
}

TEST_CASE("a program outside of a bundle, or a target that cannot be written, is named") {
  const Tree tree;
  tree.write("alone/sluice-worker", "program");
  CHECK_THAT(bundle_of(tree.root / "alone/sluice-worker").error().message(), Catch::Contains("alone/sluice-worker"));
  tree.write("bundle/bin/sluice-worker", "program");
  tree.write("target", "a file, not a directory");
  const auto result = install_bundle(tree.root / "bundle", tree.root / "target");
  REQUIRE(!result.ok());
  CHECK_THAT(result.error().message(), Catch::Contains("target"));
}

}  // namespace
}  // namespace sluice::worker
