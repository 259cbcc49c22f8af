#include "src/base/host_port.h"

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

TEST_CASE("HOST:PORT is taken apart and put together") {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& test : {Case{"vision-workers:7471", "vision-workers", 7471}, Case{"10.0.0.7:1", "10.0.0.7", 1},
                           Case{"[fd00::1]:7471", "fd00::1", 7471}, Case{"[::]:0", "::", 0},
                           Case{"localhost:65535", "localhost", 65535}}) {
    CAPTURE(test.text);
    const auto parsed = parse_host_port(test.text);
    REQUIRE(parsed.ok());
    CHECK(parsed->host == test.host);
    CHECK(parsed->port == test.port);
    CHECK(parsed->to_string() == test.text);
  }
}

TEST_CASE("what is no HOST:PORT is an error that quotes it") {
  for (const char* wrong :
       {"", ":", "host", "host:", ":7471", "host:port", "host:-1", "host:+1", "host:1x", "host:65536", "::1", "::1:80",
        "[::1]", "[]:80", "[:80", "[10.0.0.7]:80", "[::1:80", "::1]:80"}) {
    CAPTURE(wrong);
    const auto parsed = parse_host_port(wrong);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(parsed.error().message(), Catch::Contains("'" + std::string(wrong) + "'"));
  }
}

}  // namespace
}  // namespace sluice
