#include "cli/completion.h"

#include <set>

#include "cli/command_line.h"
#include "src/base/testing/catch.h"

namespace sluice::cli {
namespace {

const CompletionSource kCluster = {.namespaces =
                                       [] {
                                         return std::vector<std::string>{"default", "team-a", "team-b"};
                                       },
                                   .jobs =
                                       [] {
                                         return std::vector<std::string>{"resnet", "speech"};
                                       }};

// Without the descriptions.
std::string choices(const std::vector<std::string>& words) {
  std::string kept;
  bool in_description = false;
  for (const char c : complete(words, kCluster)) {
    in_description = c == '\t' || (in_description && c != '\n');
    if (!in_description) kept += c;
  }
  return kept;
}

TEST_CASE("each word of a command is completed as far as something is known of it") {
  struct Case {
    std::vector<std::string> words;
    const char* want;
  };
  const Case cases[] = {
      {{""}, "top\nwhy\nplan\ndoctor\nbundle\n:4\n"},
      {{"p"}, "plan\n:4\n"},
      {{"nothing", ""}, ":4\n"},
      {{"why", ""}, "resnet\nspeech\n:4\n"},
      {{"why", "s"}, "speech\n:4\n"},
      {{"why", "-n", "team-a", "r"}, "resnet\n:4\n"},
      {{"why", "--namespace=team-a", ""}, "resnet\nspeech\n:4\n"},
      {{"-n", "team-a", "why", ""}, "resnet\nspeech\n:4\n"},
      {{"why", "resnet", ""}, ":4\n"},
      {{"top", ""}, ":4\n"},
      {{"why", "-n", ""}, "default\nteam-a\nteam-b\n:4\n"},
      {{"why", "--namespace", "team"}, "team-a\nteam-b\n:4\n"},
      {{"why", "--namespace=team-b"}, "team-b\n:4\n"},
      {{"plan", "--operator-namespace", "d"}, "default\n:4\n"},
      {{"top", "-o", ""}, "text\njson\n:4\n"},
      {{"bundle", "-o", ""}, ":0\n"},
      {{"top", "--kubeconfig", ""}, ":0\n"},
      {{"top", "--context", ""}, ":4\n"},
      {{"plan", "--what-if", ""}, "workers=\nnodes=\n:6\n"},
      {{"plan", "--what-if=w"}, "workers=\n:6\n"},
      {{"top", "--w"}, "--watch\n:4\n"},
      {{"top", "--watch", ""}, ":4\n"},
      {{"why", "-w", "r"}, "resnet\n:4\n"},
      {{"-"}, "--kubeconfig\n--context\n--help\n:4\n"},
      {{"bundle", "--a"}, "--all-namespaces\n:4\n"},
      {{"why", "--a"}, ":4\n"},
  };
  for (const Case& c : cases) {
    std::string typed;
    for (const std::string& word : c.words) typed += " " + word;
    INFO(typed);
    CHECK(choices(c.words) == c.want);
  }
}

TEST_CASE("commands and flags come with what they are for") {
  CHECK_THAT(complete({"w"}, kCluster), Catch::StartsWith("why\twhy a job has the workers it has\n"));
  CHECK_THAT(complete({"top", "--wat"}, kCluster), Catch::StartsWith("--watch\t"));
}

TEST_CASE("a server that tells nothing leaves no choice, and no file") {
  const CompletionSource silent = {.namespaces = [] { return std::vector<std::string>(); },
                                   .jobs = [] { return std::vector<std::string>(); }};
  CHECK(complete({"why", ""}, silent) == ":4\n");
  CHECK(complete({"why", "-n", ""}, silent) == ":4\n");
}

TEST_CASE("every flag belongs to a command or to all, and every command's flags are known") {
  std::set<std::string_view> known, used(std::begin(kFlagsOfAll), std::end(kFlagsOfAll));
  for (const Flag& flag : known_flags()) known.insert(flag.name);
  for (const Command& command : commands()) used.insert(command.flags.begin(), command.flags.end());
  CHECK(known == used);
}

}  // namespace
}  // namespace sluice::cli
