#include "worker-image/program/program.h"

#include <prometheus/registry.h>

#include <set>

#include "src/base/testing/catch.h"
#include "src/http/server.h"

namespace sluice::program {
namespace {

Result<Flags> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  return Flags::parse(with_shared_flags({{"own", "X", "x", "a flag of one program"}}), static_cast<int>(words.size()),
                      words.data());
}

TEST_CASE("both programs' flags are there beside the program's own, each once") {
  const std::vector<Flag> flags = with_shared_flags({{"own", "X", "x", "a flag of one program"}});
  std::set<std::string_view> names;
  for (const Flag& flag : flags) CHECK(names.insert(flag.name).second);
  for (const char* name : {"own", "threads", "metrics-address", "probes-address", "tls-dir", "insecure", "job",
                           "namespace", "python-path"})
    CHECK(names.contains(name));
  const auto parsed = parse({"--own", "y", "--job", "vision", "--namespace=team-a", "--insecure"});
  REQUIRE(parsed.ok());
  CHECK(parsed->text("own") == "y");
  CHECK(parsed->given("insecure"));
  CHECK(job_labels(*parsed).job == "vision");
  CHECK(job_labels(*parsed).job_namespace == "team-a");
}

TEST_CASE("threads are a number within bounds, or follow the quota") {
  struct Case {
    const char* text;
    std::optional<std::size_t> want;
  };
  for (const Case& test :
       {Case{"0", 0}, Case{"7", 7}, Case{"1024", 1024}, Case{"1025", std::nullopt}, Case{"-1", std::nullopt},
        Case{"many", std::nullopt}, Case{"1.5", std::nullopt}, Case{"99999999999999999999", std::nullopt}}) {
    INFO(test.text);
    const auto flags = parse({"--threads", test.text});
    REQUIRE(flags.ok());
    const auto threads = fixed_threads(*flags);
    REQUIRE(threads.ok() == test.want.has_value());
    if (test.want)
      CHECK(*threads == *test.want);
    else
      CHECK_THAT(std::string(threads.error().message()), Catch::Contains("--threads"));
  }
  CHECK(threads_now(7) == 7);
  CHECK(threads_now(0) >= 1);
}

TEST_CASE("pages are served where it is said, and nowhere else") {
  const auto registry = std::make_shared<prometheus::Registry>();
  const auto serve = [&](std::vector<const char*> words) {
    return serve_pages(*parse(std::move(words)), registry, [] { return ""; });
  };
  const auto nowhere = serve({});
  REQUIRE(nowhere.ok());
  CHECK(nowhere->metrics_port() == 0);
  CHECK(nowhere->probes_port() == 0);
  const auto apart = serve({"--metrics-address", "127.0.0.1:0", "--probes-address", "127.0.0.1:0"});
  REQUIRE(apart.ok());
  CHECK(apart->metrics_port() > 0);
  CHECK(apart->probes_port() > 0);
  CHECK(apart->metrics_port() != apart->probes_port());
  CHECK(!serve({"--metrics-address", "nonsense"}).ok());
  CHECK(!serve({"--probes-address", "nonsense"}).ok());
}

TEST_CASE("what a program returns tells how it went") {
  CHECK(exit_status("test", {}, kFailed) == 0);
  CHECK(exit_status("test", unavailable("for the test"), kFailed) == 1);
  CHECK(exit_status("test", invalid_argument("for the test"), kWrongUsage) == 2);
}

}  // namespace
}  // namespace sluice::program
