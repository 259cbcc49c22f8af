#include "worker-image/worker/listen_address.h"

#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::worker {
namespace {

Result<std::string> listens(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sluice-worker");
  const auto flags = Flags::parse({{"listen", "IP:PORT", "0.0.0.0:7471", ""},
                                   {"insecure", "", "", ""},
                                   {"insecure-anywhere", "IP:PORT", "", ""},
                                   {"tls-dir", "DIR", "", ""}},
                                  static_cast<int>(arguments.size()), arguments.data());
  REQUIRE(flags.ok());
  return listen_address(*flags);
}

TEST_CASE("a worker without TLS listens on loopback only, unless another address is wanted") {
  struct Case {
    std::vector<const char*> arguments;
    const char* want;  // "": refused
  };
  const Case cases[] = {
      {{}, "0.0.0.0:7471"},
      {{"--tls-dir", "/tls", "--listen", "10.0.0.1:1"}, "10.0.0.1:1"},
      {{"--insecure"}, "127.0.0.1:7471"},
      {{"--insecure", "--listen", "127.0.0.1:0"}, "127.0.0.1:0"},
      {{"--insecure", "--listen", "127.9.9.9:80"}, "127.9.9.9:80"},
      {{"--insecure", "--listen", "[::1]:80"}, "[::1]:80"},
      {{"--insecure", "--listen", "localhost:80"}, "localhost:80"},
      {{"--insecure", "--listen", "0.0.0.0:80"}, ""},
      {{"--insecure", "--listen", "[::]:80"}, ""},
      {{"--insecure", "--listen", "10.0.0.1:80"}, ""},
      {{"--insecure", "--listen", "worker:80"}, ""},
      {{"--insecure", "--listen", "127.example.com:80"}, ""},
      {{"--insecure", "--listen", "localhost.example.com:80"}, ""},
      {{"--insecure", "--listen", ":80"}, ""},
      {{"--insecure", "--listen", "unix:/tmp/socket"}, ""},
      {{"--insecure", "--insecure-anywhere", "0.0.0.0:7471"}, "0.0.0.0:7471"},
      {{"--insecure", "--insecure-anywhere=10.0.0.1:80"}, "10.0.0.1:80"},
      {{"--insecure", "--insecure-anywhere", "10.0.0.1:80", "--listen", "10.0.0.1:80"}, ""},
      {{"--insecure-anywhere", "0.0.0.0:7471", "--tls-dir", "/tls"}, ""},
      {{"--insecure-anywhere", "0.0.0.0:7471"}, ""},
      {{"--insecure=false", "--listen", "10.0.0.1:80"}, "10.0.0.1:80"},
  };
  for (const Case& test : cases) {
    const auto address = listens(test.arguments);
    INFO(std::string(test.want) << " of " << test.arguments.size() << " arguments, the last "
                                << (test.arguments.empty() ? "none" : test.arguments.back()));
    CHECK((address.ok() ? *address : "") == test.want);
    if (!address.ok()) CHECK_THAT(address.error().message(), Catch::Contains("--insecure-anywhere"));
  }
}

}  // namespace
}  // namespace sluice::worker
