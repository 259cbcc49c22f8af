#include "src/base/flags.h"

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

const std::vector<Flag> kKnown = {
    {"socket", "PATH", "/run/x.sock", "where to listen"},
    {"threads", "N", "0", "threads; 0: from the cgroup"},
    {"insecure", "", "", "no TLS"},
};

Result<Flags> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  return Flags::parse(kKnown, static_cast<int>(words.size()), words.data());
}

TEST_CASE("defaults hold until a flag is given, in either spelling") {
  auto flags = parse({"--threads", "4", "--socket=/tmp/a", "install"});
  REQUIRE(flags.ok());
  CHECK(flags->text("socket") == "/tmp/a");
  CHECK(*flags->integer("threads") == 4);
  CHECK_FALSE(flags->given("insecure"));
  CHECK(flags->positional() == std::vector<std::string>{"install"});
  CHECK(parse({})->text("socket") == "/run/x.sock");
  CHECK(parse({"--insecure"})->given("insecure"));
  CHECK_FALSE(parse({"--insecure=false"})->given("insecure"));
}

TEST_CASE("a wrong command line names the flag and the way out") {
  CHECK(parse({"--thread", "4"}).error().message() == "unknown flag --thread (see --help)");
  CHECK(parse({"--threads"}).error().message() == "flag --threads needs a value: --threads N");
  CHECK(parse({"--threads", "four"})->integer("threads").error().message() ==
        "flag --threads: 'four' is not a whole number");
}

TEST_CASE("help shows every flag with its default") {
  const std::string help = Flags::help(kKnown, "program [flags]");
  CHECK_THAT(help, Catch::Contains("--socket PATH") && Catch::Contains("(default /run/x.sock)") &&
                       Catch::Contains("--insecure"));
}

}  // namespace
}  // namespace sluice
