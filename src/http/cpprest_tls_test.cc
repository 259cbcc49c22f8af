#include "src/http/cpprest_transport.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/http/testing/loopback_server.h"

// Whom the transport trusts, and who it is itself.
namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::CertificateAuthority;
using testing::Connection;
using testing::kPatience;
using testing::LoopbackOptions;
using testing::LoopbackServer;

Result<Response> get_root(Transport& transport) { return transport.send({"GET", "/"}, kPatience, {}); }

TEST_CASE("only the endpoint's authority and name are trusted") {
  const CertificateAuthority ours("ours");
  const CertificateAuthority theirs("theirs");
  struct Case {
    const char* why;
    const CertificateAuthority& issuer;
    const char* names;
    const char* server_name;
    bool works;
  };
  const Case cases[] = {
      {"our authority, the right address", ours, "IP:127.0.0.1", "", true},
      {"our authority, the right name", ours, "DNS:api.example", "api.example", true},
      {"another authority", theirs, "IP:127.0.0.1", "", false},
      {"another address", ours, "IP:127.0.0.2", "", false},
      {"another name", ours, "DNS:other.example,IP:127.0.0.1", "api.example", false},
      {"an address is not a name", ours, "DNS:127.0.0.1", "", false},
  };
  for (const Case& c : cases) {
    INFO(c.why);
    LoopbackOptions options;
    options.identity = c.issuer.issue("server", c.names);
    LoopbackServer server(
        [](Connection& connection) {
          while (connection.read_request()) connection.answer(200, "secret");
        },
        options);
    Endpoint endpoint{server.url(), ours.certificate_pem()};
    endpoint.server_name = c.server_name;
    const auto transport = make_cpprest_transport(endpoint);
    REQUIRE(transport.ok());
    const auto response = get_root(**transport);
    CHECK(response.ok() == c.works);
    CHECK((response.ok() || response.error().code() == ErrorCode::kUnavailable));
  }
}

TEST_CASE("the client shows its certificate") {
  const CertificateAuthority authority("clients");
  LoopbackOptions options;
  options.identity = authority.issue("server", "IP:127.0.0.1");
  options.client_ca = authority.certificate_pem();
  LoopbackServer server(
      [](Connection& connection) {
        while (connection.read_request()) connection.answer(200, "welcome");
      },
      options);
  const testing::Identity client = authority.issue("client", "");
  Endpoint endpoint{server.url(), authority.certificate_pem(), client.certificate_pem, client.key_pem};
  CHECK(get_root(**make_cpprest_transport(endpoint))->body == "welcome");

  endpoint.client_certificate_pem.clear();
  endpoint.client_key_pem.clear();
  CHECK_FALSE(get_root(**make_cpprest_transport(endpoint)).ok());
}

TEST_CASE("a certificate of a public authority is refused where the endpoint names its own") {
  // What OpenSSL takes for the system's authorities is in this file; cpprestsdk always adds them.
  const CertificateAuthority everybodys("public");
  const CertificateAuthority ours("ours");
  const sluice::testing::TemporaryDirectory folder;
  const std::string bundle = folder.file("public.pem", everybodys.certificate_pem());
  setenv("SSL_CERT_FILE", bundle.c_str(), 1);
  LoopbackOptions options;
  options.identity = everybodys.issue("server", "IP:127.0.0.1");
  LoopbackServer server(
      [](Connection& connection) {
        while (connection.read_request()) connection.answer(200, "welcome");
      },
      options);
  const auto trusting_the_system = get_root(**make_cpprest_transport({server.url()}));
  const auto trusting_ours = get_root(**make_cpprest_transport({server.url(), ours.certificate_pem()}));
  unsetenv("SSL_CERT_FILE");
  CHECK(trusting_the_system.ok());  // else the other check would prove nothing
  REQUIRE_FALSE(trusting_ours.ok());
  CHECK(trusting_ours.error().code() == ErrorCode::kUnavailable);
}

TEST_CASE("a new stream sees a rotated certificate, and is refused one of another authority") {
  const CertificateAuthority ours("ours");
  const CertificateAuthority theirs("theirs");
  struct Sink final : ByteSink {
    Result<void> on_bytes(std::string_view) override { return {}; }
  } sink;
  for (const bool is_ours : {true, false}) {
    LoopbackOptions options;
    options.identity = (is_ours ? ours : theirs).issue("server", "IP:127.0.0.1");
    LoopbackServer server(
        [](Connection& connection) {
          connection.read_request();
          connection.start_chunked();
          connection.write_chunk("x");
          connection.write("0\r\n\r\n");
        },
        options);
    const auto transport = *make_cpprest_transport({server.url(), ours.certificate_pem()});
    CHECK(transport->stream({"GET", "/"}, sink, kPatience, {}).ok() == is_ours);
  }
}

}  // namespace
}  // namespace sluice::http
