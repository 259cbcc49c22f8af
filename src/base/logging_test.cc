#include "src/base/logging.h"

#include <vector>

#include "src/base/log_format.h"
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

TEST_CASE("a line can be a JSON object, whatever its texts hold") {
  set_log_format(LogFormat::kJson);
  const auto lines = lines_of([] {
    log_warning("observe", "no \"answer\"", {{"error", "a\\b\n\x01\xff"}, {"tries", 3}});
    log_info("observe", "alone");
  });
  set_log_format(LogFormat::kText);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::StartsWith(R"({"time":"2)"));
  CHECK_THAT(lines[0],
             Catch::EndsWith(R"(Z","level":"WARNING","component":"observe","message":"no \"answer\"","fields":)"
                             R"({"error":"a\\b\u000a\u0001)"
                             "\xEF\xBF\xBD"
                             R"(","tries":"3"}})"));
  CHECK_THAT(lines[1], Catch::EndsWith(R"("message":"alone","fields":{}})"));
}

TEST_CASE("debug lines are dropped by default") {
  CHECK(lines_of([] { log_debug("kube", "chatter"); }).empty());
}

}  // namespace
}  // namespace sluice
