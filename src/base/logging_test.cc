#include "src/base/logging.h"

#include <vector>

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

std::vector<std::string> lines_of(const std::function<void()>& body) {
  std::vector<std::string> lines;
  set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  body();
  set_log_sink(nullptr);
  return lines;
}

TEST_CASE("a line holds level, component, message and fields") {
  const auto lines = lines_of([] {
    log_info("feeder", "worker connected", {{"address", "10.0.0.7:7471"}, {"credits", 3}});
  });
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::EndsWith("Z INFO feeder \"worker connected\" address=10.0.0.7:7471 credits=3"));
}

TEST_CASE("values that could break the line are quoted and escaped") {
  const auto lines = lines_of([] { log_error("kube", "refused", {{"body", "a \"b\"\nINFO forged"}, {"empty", ""}}); });
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::EndsWith(R"(body="a \"b\"\nINFO forged" empty="")"));
}

TEST_CASE("debug lines are dropped by default") {
  CHECK(lines_of([] { log_debug("kube", "chatter"); }).empty());
}

}  // namespace
}  // namespace sluice
