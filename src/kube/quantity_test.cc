#include "src/kube/quantity.h"

#include <limits>
#include <string>

#include "src/base/testing/catch.h"

namespace sluice::kube {
namespace {

struct Case {
  const char* text;
  std::int64_t millicores;
  std::int64_t bytes;
};

TEST_CASE(
    "quantities are exact, fractions of the unit round away from zero, and what is too large is the most there is") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Case cases[] = {
      {"0", 0, 0},
      {"2", 2000, 2},
      {"250m", 250, 1},
      {"0.5", 500, 1},
      {".5", 500, 1},
      {"1.", 1000, 1},
      {"1.5Gi", 1610612736000, 1610612736},
      {"1Ki", 1024000, 1024},
      {"1k", 1000000, 1000},
      {"1M", 1000000000, 1000000},
      {"1e3", 1000000, 1000},
      {"1E3", 1000000, 1000},
      {"1E", kMost, 1000000000000000000},
      {"12e-1", 1200, 2},
      {"100u", 1, 1},
      {"1000u", 1, 1},
      {"1001u", 2, 1},
      {"1n", 1, 1},
      {"-1", -1000, -1},
      {"-1.5", -1500, -2},
      {"+3", 3000, 3},
      {"0.1", 100, 1},
      {"7Ei", kMost, 8070450532247928832},
      {"8Ei", kMost, kMost},
      {"9223372036854775807", kMost, 9223372036854775807},
      {"9223372036854775808", kMost, kMost},
      {"-9223372036854775809", -kMost, -kMost},
      {"1e99", kMost, kMost},
      {"0.000000000000000000000000000001", 1, 1},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const auto millicores = parse_millicores(c.text);
    const auto bytes = parse_bytes(c.text);
    REQUIRE(millicores.ok());
    REQUIRE(bytes.ok());
    CHECK(*millicores == c.millicores);
    CHECK(*bytes == c.bytes);
  }
}

TEST_CASE("what is no quantity is an error with its text") {
  for (const char* text :
       {"", "m", ".", "1 ", " 1", "1mm", "1.2.3", "--1", "1ki", "1e", "1e+", "1e1234", "0x10", "1,5", "NaN"}) {
    INFO(text);
    const auto parsed = parse_bytes(text);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(parsed.error().message(), Catch::Contains("'" + std::string(text) + "'"));
  }
}

}  // namespace
}  // namespace sluice::kube
