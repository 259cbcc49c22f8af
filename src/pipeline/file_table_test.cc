#include "src/pipeline/file_table.h"

#include <memory>
#include <random>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::pipeline {
namespace {

using testing::File;
using testing::file_table;

std::vector<File> many_files(std::size_t count) {
  std::vector<File> files;
  for (std::size_t i = 0; i < count; ++i)
    files.push_back({"class-" + std::to_string(i / 100) + "/image" + std::to_string(i * 7919 % 1000) + ".jpg",
                     static_cast<std::int64_t>(i / 100)});
  return files;
}

std::vector<File> shuffled(std::vector<File> files) {
  std::shuffle(files.begin(), files.end(), std::mt19937(1));
  return files;
}

TEST_CASE("every file of a table has its path and its label") {
  const std::pair<const char*, std::vector<File>> cases[] = {
      {"no files", {}},
      {"one file beside the root", {{"a.jpg", 5}}},
      {"an absolute path", {{"/data/x/a.jpg", 0}, {"/b.jpg", -1}}},
      {"the same directory twice", {{"x/a.jpg", 1}, {"y/a.jpg", 2}, {"x/b.jpg", INT64_MIN}}},
      {"64 files", many_files(64)},
      {"65 files", many_files(65)},
      {"many, in order", many_files(1000)},
      {"many, in any order", shuffled(many_files(1000))},
  };
  for (const auto& [name, files] : cases) {
    CAPTURE(name);
    const auto table = FileTable::parse(file_table(files), files.size());
    REQUIRE(table.ok());
    REQUIRE(table->size() == files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      CHECK(table->path(i) == files[i].path);
      CHECK(table->label(i) == files[i].label);
    }
  }
}

TEST_CASE("a table whose parts do not fit each other is refused") {
  const std::string good = file_table({{"x/a.jpg", 1}, {"y/b.jpg", 2}});
  const auto with = [&](std::size_t offset, char value) {
    std::string changed = good;
    changed[offset] = value;
    return changed;
  };
  constexpr std::size_t kRuns = 24 + 2 * 8;
  const std::tuple<const char*, std::string, std::uint64_t, const char*> cases[] = {
      {"empty", "", 2, "cut off"},
      {"of one file fewer", good, 1, "not those of 1 files"},
      {"of one file more", good, 3, "not those of 3 files"},
      {"of absurdly many files", good, std::uint64_t{1} << 63, "not those of"},
      {"absurdly many runs", with(7, '\x7f'), 2, "not those of"},
      {"a byte is missing", good.substr(0, good.size() - 1), 2, "not those of"},
      {"the last directory has no end", with(kRuns + 16 + 3, 'z'), 2, "last directory is cut off"},
      {"a directory that is not there", with(kRuns, 2), 2, "run 0"},
      {"the first run begins late", with(kRuns + 4, 1), 2, "run 0"},
      {"runs that do not rise", with(kRuns + 12, 0), 2, "run 1"},
      {"a run beyond the files", with(kRuns + 12, 2), 2, "run 1"},
      {"a name without an end", with(good.size() - 1, 'g'), 2, "names for 1 of 2 files"},
      {"a name too many", with(good.size() - 3, 0), 2, "more names than files"},
  };
  for (const auto& [name, bytes, files, want] : cases) {
    CAPTURE(name);
    const auto table = FileTable::parse(bytes, files);
    REQUIRE_FALSE(table.ok());
    CHECK(table.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(table.error().message(), Catch::Contains(want));
  }
}

TEST_CASE("whatever the bytes of a table are, it is refused or can be read") {
  std::mt19937 random(7);
  const std::string good = file_table(many_files(70));
  int readable = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto exact = std::make_shared<const std::vector<char>>(bytes.begin(), bytes.end());  // no NUL behind them
    const auto table = FileTable::parse({exact->data(), exact->size()}, 70, exact);
    if (!table.ok()) continue;
    ++readable;
    for (std::size_t i = 0; i < table->size(); ++i) REQUIRE(table->path(i).size() < good.size());
  }
  CHECK(readable > 0);
}

}  // namespace
}  // namespace sluice::pipeline
