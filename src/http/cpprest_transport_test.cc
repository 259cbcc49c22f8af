#include "src/http/cpprest_transport.h"

#include <atomic>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/http/testing/loopback_server.h"
#include "src/http/testing/proxy_server.h"

// These tests use real sockets on the loopback interface. A test waits up to kPatience for an event that must happen.
// The server's script guarantees the events that must not happen.
namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::CertificateAuthority;
using testing::Connection;
using testing::kPatience;
using testing::LoopbackOptions;
using testing::LoopbackServer;

std::shared_ptr<Transport> connect_to(const std::string& url) {
  auto transport = make_cpprest_transport({url});
  REQUIRE(transport.ok());
  return *transport;
}

Result<Response> get(Transport& transport, const std::string& target = "/") {
  return transport.send({"GET", target}, kPatience, {});
}

TEST_CASE("a request arrives as it was made and its answer comes back") {
  std::string seen;
  LoopbackServer server([&](Connection& connection) {
    seen = *connection.read_request();
    connection.answer(201, "made", "X-One: 1\r\n");
  });
  const auto transport = connect_to(server.url() + "/prefix");
  const auto response = transport->send({"PATCH",
                                         "/a/b%2Fc?force=true&x=a%20b",
                                         {{"Content-Type", "application/apply-patch+yaml"}, {"X-Two", "2"}},
                                         "{}"},
                                        kPatience, {});

  REQUIRE(response.ok());
  CHECK(response->status == 201);
  CHECK(response->body == "made");
  CHECK(response->headers.at("x-one") == "1");
  CHECK_THAT(seen, Catch::StartsWith("PATCH /prefix/a/b%2Fc?force=true&x=a%20b HTTP/1.1\r\n"));
  CHECK_THAT(seen, Catch::Contains("Content-Type:application/apply-patch+yaml\r\n"));
  CHECK_THAT(seen, Catch::Contains("X-Two:2\r\n"));
  CHECK_THAT(seen, Catch::EndsWith("\r\n\r\n{}"));
}

TEST_CASE("any status is an answer, with its body") {
  LoopbackServer server([](Connection& connection) {
    while (connection.read_request()) connection.answer(409, R"({"reason":"Conflict"})", "Retry-After: 1\r\n");
  });
  const auto transport = connect_to(server.url());
  const auto response = get(*transport);
  REQUIRE(response.ok());
  CHECK(response->status == 409);
  CHECK(response->body == R"({"reason":"Conflict"})");
  CHECK(response->headers.at("Retry-After") == "1");
}

TEST_CASE("redirects are answers too: credentials do not travel") {
  LoopbackServer server([](Connection& connection) {
    while (connection.read_request()) connection.answer(302, "", "Location: http://127.0.0.1:1/\r\n");
  });
  const auto response = get(*connect_to(server.url()));
  REQUIRE(response.ok());
  CHECK(response->status == 302);
}

TEST_CASE("connections are kept, and a kept one that died is replaced") {
  std::atomic<int> per_connection = 2;
  LoopbackServer server([&](Connection& connection) {
    for (int i = 0; i < per_connection && connection.read_request(); ++i) connection.answer(200, "yes");
  });
  const auto transport = connect_to(server.url());
  for (int i = 0; i < 10; ++i) {
    INFO(i);
    const auto response = get(*transport);
    REQUIRE(response.ok());
    CHECK(response->body == "yes");
  }
  CHECK(server.connections() >= 5);
  CHECK(server.connections() <= 10);
}

TEST_CASE("a lost answer is asked for again once, but never after a POST") {
  std::atomic<int> requests = 0;
  LoopbackServer server([&](Connection& connection) {
    if (connection.read_request()) ++requests;  // and hangs up without an answer
  });
  const auto transport = connect_to(server.url());
  CHECK(transport->send({"POST", "/", {}, "{}"}, kPatience, {}).error().code() == ErrorCode::kUnavailable);
  CHECK(requests == 1);
  CHECK(get(*transport).error().code() == ErrorCode::kUnavailable);
  CHECK(requests == 3);
}

TEST_CASE("a POST uses a kept connection only if it may arrive twice") {
  LoopbackServer server([](Connection& connection) {
    while (connection.read_request()) connection.answer(201, "made");
  });
  const auto transport = connect_to(server.url());
  REQUIRE(get(*transport).ok());
  Request post{"POST", "/", {}, "{}"};
  post.may_repeat = true;
  for (int i = 0; i < 3; ++i) CHECK(transport->send(post, kPatience, {})->status == 201);
  // A connection comes back to the pool a moment after its answer: one request or two may be ahead of that.
  const int connections = server.connections();
  CHECK(connections < 4);
  post.may_repeat = false;
  CHECK(transport->send(post, kPatience, {})->status == 201);
  CHECK(server.connections() == connections + 1);
}

TEST_CASE("a port without a listener is Unavailable") {
  const auto transport = connect_to("http://127.0.0.1:" + std::to_string(testing::unused_port()));
  const auto response = get(*transport);
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().code() == ErrorCode::kUnavailable);
  CHECK_THAT(response.error().message(), Catch::Contains("127.0.0.1"));
}

TEST_CASE("no answer in time is DeadlineExceeded") {
  LoopbackServer server([](Connection& connection) { connection.wait_for_hang_up(); });
  const auto response = connect_to(server.url())->send({"GET", "/"}, 50ms, {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().code() == ErrorCode::kDeadlineExceeded);
}

TEST_CASE("an answer beyond the limit is refused") {
  LoopbackServer server([](Connection& connection) {
    while (connection.read_request()) connection.answer(200, std::string(100000, 'x'));
  });
  CpprestOptions options;
  options.max_body_bytes = 1000;
  const auto transport = *make_cpprest_transport({server.url()}, options);
  CHECK(get(*transport).error().code() == ErrorCode::kResourceExhausted);
}

TEST_CASE("many requests at once") {
  LoopbackServer server([](Connection& connection) {
    while (const auto request = connection.read_request())
      connection.answer(200, request->substr(4, request->find(' ', 4) - 4));
  });
  const auto transport = connect_to(server.url());
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const std::string target = "/" + std::to_string(t) + "/" + std::to_string(i);
        const auto response = get(*transport, target);
        if (response.ok() && response->body == target) ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(right == 200);
}

TEST_CASE("IPv6 literals") {
  std::string seen;
  std::unique_ptr<LoopbackServer> server;
  LoopbackOptions options;
  options.address = "::1";
  try {
    server = std::make_unique<LoopbackServer>(
        [&](Connection& connection) {
          seen = *connection.read_request();
          connection.answer(200, "six");
        },
        options);
  } catch (const std::exception& no_ipv6) {
    WARN("skipped: this machine has no IPv6 loopback: " << no_ipv6.what());
    return;
  }
  const auto response = get(*connect_to(server->url()));
  REQUIRE(response.ok());
  CHECK(response->body == "six");
  CHECK_THAT(seen, Catch::Contains("Host:[::1]:" + std::to_string(server->port()) + "\r\n"));
}

TEST_CASE("a proxy is asked for the server, by name, and told who asks") {
  std::string seen;
  LoopbackServer server([&](Connection& connection) {
    while (const auto request = connection.read_request()) {
      seen = *request;
      connection.answer(200, "behind");
    }
  });
  const testing::ProxyServer proxy(server.port());
  const std::string address = "127.0.0.1:" + std::to_string(proxy.port());
  const auto transport = *make_cpprest_transport(
      {.base_url = "http://prometheus.example:9090/prefix", .proxy_url = "http://me:p%40ss@" + address});
  const auto response = get(*transport, "/api?x=1");
  REQUIRE(response.ok());
  CHECK(response->body == "behind");
  CHECK_THAT(seen, Catch::StartsWith("GET http://prometheus.example:9090/prefix/api?x=1 HTTP/1.1\r\n"));
  CHECK_THAT(seen, Catch::Contains("Proxy-Authorization:Basic bWU6cEBzcw==\r\n"));
}

TEST_CASE("TLS goes through a proxy from end to end, and the server's certificate is checked") {
  const CertificateAuthority authority("ca");
  const CertificateAuthority other("other");
  LoopbackServer server(
      [&](Connection& connection) {
        while (connection.read_request()) connection.answer(200, "behind");
      },
      {.identity = authority.issue("server", "DNS:prometheus.example"), .client_ca = std::nullopt});
  const testing::ProxyServer proxy(server.port());
  const std::string proxy_url = "http://127.0.0.1:" + std::to_string(proxy.port());
  const auto transport = *make_cpprest_transport(
      {.base_url = "https://prometheus.example", .ca_pem = authority.certificate_pem(), .proxy_url = proxy_url});
  const auto response = get(*transport);
  REQUIRE(response.ok());
  CHECK(response->body == "behind");
  CHECK_THAT(proxy.heads().at(0), Catch::StartsWith("CONNECT prometheus.example:443 HTTP/1.1\r\n"));
  const auto mistrusting = *make_cpprest_transport(
      {.base_url = "https://prometheus.example", .ca_pem = other.certificate_pem(), .proxy_url = proxy_url});
  const auto refused = get(*mistrusting);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message(),
             Catch::Contains("https://prometheus.example") && Catch::Contains("through " + proxy_url));
}

TEST_CASE("unusable endpoints are named at once") {
  const CertificateAuthority authority("ca");
  const testing::Identity one = authority.issue("one", "");
  const testing::Identity two = authority.issue("two", "");
  const Endpoint endpoints[] = {
      {""},
      {"ftp://example"},
      {"http://"},
      {"http://user:secret@example"},
      {"http://example/?tenant=a"},
      {"http://example/#a"},
      {"https://example", "not a certificate"},
      {"https://example", "", one.certificate_pem, ""},
      {"https://example", "", one.certificate_pem, two.key_pem},
      {"https://example", "", "nonsense", one.key_pem},
      {.base_url = "https://example", .proxy_url = "socks5://proxy:1080"},
      {.base_url = "https://example", .proxy_url = "http://proxy"},
      {.base_url = "https://[::1]", .proxy_url = "http://proxy:1"},
      {.base_url = "https://example", .proxy_url = "proxy:3128"},
  };
  for (const Endpoint& endpoint : endpoints) {
    INFO(endpoint.base_url << " " << endpoint.client_certificate_pem.size());
    const auto transport = make_cpprest_transport(endpoint);
    REQUIRE_FALSE(transport.ok());
    CHECK(transport.error().code() == ErrorCode::kInvalidArgument);
    CHECK(transport.error().message().find("secret") == std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::http
