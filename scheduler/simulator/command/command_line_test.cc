// Flags of sluice-sim, and how sources and files follow from them.
#include "scheduler/simulator/command/command_line.h"

#include <cstdlib>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::simulator {
namespace {

using sluice::testing::TemporaryDirectory;

Flags flags(std::vector<std::string> words) {
  words.insert(words.begin(), "sluice-sim");
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  auto parsed = Flags::parse(known_flags(), static_cast<int>(pointers.size()), pointers.data());
  REQUIRE(parsed.ok());
  return std::move(parsed).value();
}

TEST_CASE("Policies are named with commas, each once, and all means all") {
  struct Row {
    const char* text;
    std::vector<std::string> want;
  };
  const Row rows[] = {{"static", {"static"}},
                      {"static,sluice", {"static", "sluice"}},
                      {",static,,sluice,", {"static", "sluice"}},
                      {"sluice,static,sluice", {"sluice", "static"}},
                      {"all", all_policies()}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto options = grid_options(flags({"run", "--policy", row.text}));
    REQUIRE(options.ok());
    CHECK(options->policies == row.want);
  }
}

TEST_CASE("Without flags: eight seeds, every processor, the baselines beside Sluice, no time lines") {
  const auto options = grid_options(flags({"run"}));
  REQUIRE(options.ok());
  CHECK(options->seeds == 8);
  CHECK(options->threads >= 1);
  CHECK_FALSE(options->timeline);
  CHECK(options->policies.front() == "static");
  CHECK(options->policies.back() == "sluice");
  CHECK(grid_options(flags({"run", "--time-lines"}))->timeline);
  CHECK(grid_options(flags({"run", "--threads", "3"}))->threads == 3);
}

TEST_CASE("A number out of range names its flag") {
  struct Row {
    const char* flag;
    const char* value;
    int least;
    bool good;
  };
  const Row rows[] = {{"seeds", "1", 1, true},        {"seeds", "0", 1, false},   {"seeds", "-3", 1, false},
                      {"seeds", "1000001", 1, false}, {"seeds", "two", 1, false}, {"seed", "0", 0, true},
                      {"most-jobs", "1e3", 1, false}};
  for (const Row& row : rows) {
    CAPTURE(row.flag, row.value);
    const auto value = count_flag(flags({"run", std::string("--") + row.flag, row.value}), row.flag, row.least);
    CHECK(value.ok() == row.good);
    if (!value.ok()) CHECK_THAT(value.error().message(), Catch::Contains(row.flag));
  }
}

TEST_CASE("One file is named after the command: none and two are errors that say what was wanted") {
  CHECK(*only_file(flags({"run", "a.yaml"}), "SCENARIO.yaml") == "a.yaml");
  for (const auto& words : {std::vector<std::string>{"run"}, {"run", "a", "b"}})
    CHECK(only_file(flags(words), "SCENARIO.yaml").error().message() == "expected one SCENARIO.yaml after the command");
}

TEST_CASE("Job lists are where the flag says, else where the environment does") {
  const TemporaryDirectory folder;
  folder.file("profiles.yaml", "lm: {source: nobody, knee_cores_per_gpu: 0.5}\n");
  const std::string catalogue = folder.path.string();
  const char* before = std::getenv("SLUICE_JOB_LISTS");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("SLUICE_JOB_LISTS", "/from/the/environment", 1);
  CHECK(sources_of(flags({"run", "--catalogue", catalogue}))->lists_folder == "/from/the/environment");
  CHECK(sources_of(flags({"run", "--catalogue", catalogue, "--job-lists", "/named"}))->lists_folder == "/named");
  ::unsetenv("SLUICE_JOB_LISTS");
  CHECK(sources_of(flags({"run", "--catalogue", catalogue}))->lists_folder.empty());
  CHECK(sources_of(flags({"run", "--catalogue", catalogue}))->profiles.contains("lm"));
  if (before != nullptr) ::setenv("SLUICE_JOB_LISTS", kept.c_str(), 1);
}

TEST_CASE("A profile that is wrong is told by its file and line") {
  const TemporaryDirectory folder;
  const std::string path =
      folder.file("profiles.yaml", "lm: {source: nobody, knee_cores_per_gpu: 0.5}\nvgg:\n  source: x\n");
  const auto sources = sources_of(flags({"run", "--catalogue", folder.path.string()}));
  REQUIRE_FALSE(sources.ok());
  CHECK_THAT(sources.error().message(), Catch::StartsWith(path + ":3: vgg: \"knee_cores_per_gpu\" is missing"));
}

TEST_CASE("A file is written as it is, or it is said that it could not be") {
  const TemporaryDirectory folder;
  const std::string path = (folder.path / "out.txt").string();
  CHECK(write_file(path, "one\ntwo").ok());
  CHECK(*read_file(path) == "one\ntwo");
  CHECK(write_file(path, "").ok());
  CHECK(read_file(path)->empty());
  const auto failed = write_file((folder.path / "none" / "out.txt").string(), "x");
  REQUIRE_FALSE(failed.ok());
  CHECK_THAT(failed.error().message(), Catch::Contains("out.txt"));
  CHECK_FALSE(read_file((folder.path / "missing").string()).ok());
}

}  // namespace
}  // namespace sluice::simulator
