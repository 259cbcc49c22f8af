#include "src/http/server.h"

#include <boost/asio.hpp>

#include "src/base/testing/catch.h"

namespace sluice::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Sends bytes as they are and reads until the server hangs up.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(io_) {
    socket_.connect(tcp::endpoint(asio::ip::address_v4::loopback(), port));
  }
  void send(const std::string& bytes) {
    boost::system::error_code ignored;
    asio::write(socket_, asio::buffer(bytes), ignored);
  }
  std::string read_all() {
    std::string received;
    boost::system::error_code end;
    asio::read(socket_, asio::dynamic_buffer(received), end);
    return received;
  }

 private:
  asio::io_context io_;
  tcp::socket socket_;
};

std::string ask(std::uint16_t port, const std::string& first_line) {
  RawClient client(port);
  client.send(first_line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  return client.read_all();
}

Routes routes() {
  return {{"/healthz",
           [](const Query&) {
             return Page{200, "text/plain", "ok\n"};
           }},
          {"/readyz",
           [](const Query&) {
             return Page{503, "text/plain", "not yet\n"};
           }},
          {"/echo", [](const Query& query) {
             Page page;
             for (const auto& [name, value] : query) page.body += "[" + name + "=" + value + "]";
             return page;
           }}};
}

TEST_CASE("pages, errors and methods") {
  const auto server = Server::start("127.0.0.1:0", routes());
  REQUIRE(server.ok());
  const std::uint16_t port = (*server)->port();

  struct Case {
    const char* request;
    const char* status;
    const char* body;
  };
  const Case cases[] = {
      {"GET /healthz", "HTTP/1.1 200", "ok\n"},
      {"GET /healthz?verbose=1", "HTTP/1.1 200", "ok\n"},
      {"GET /readyz", "HTTP/1.1 503", "not yet\n"},
      {"GET /nothing", "HTTP/1.1 404", "not found\n"},
      {"POST /healthz", "HTTP/1.1 405", "only GET and HEAD\n"},
      {"HEAD /healthz", "HTTP/1.1 200", "\r\n\r\n"},
  };
  for (const Case& c : cases) {
    INFO(c.request);
    const std::string answer = ask(port, c.request);
    CHECK_THAT(answer, Catch::StartsWith(c.status));
    CHECK_THAT(answer, Catch::EndsWith(c.body));
  }
  CHECK_THAT(ask(port, "GET /healthz"), Catch::Contains("Content-Length: 3"));
  CHECK_THAT(ask(port, "HEAD /healthz"), Catch::Contains("Content-Length: 3"));
}

TEST_CASE("a page sees what stands behind the question mark, decoded") {
  const auto server = Server::start("127.0.0.1:0", routes());
  const std::uint16_t port = (*server)->port();
  struct Case {
    const char* target;
    const char* body;
  };
  const Case cases[] = {
      {"/echo", "\r\n\r\n"},
      {"/echo?", "\r\n\r\n"},
      {"/echo?nodes=2x32", "\r\n\r\n[nodes=2x32]"},
      {"/echo?a=1&b=2&a=3", "[a=3][b=2]"},
      {"/echo?a&b=&=c&&", "[=c][a=][b=]"},
      {"/echo?a=b=c", "[a=b=c]"},
      {"/echo?a%26b=%2B+%c3%A4", "[a&b=+ \xC3\xA4]"},
  };
  for (const Case& c : cases) {
    INFO(c.target);
    const std::string answer = ask(port, std::string("GET ") + c.target);
    CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 200"));
    CHECK_THAT(answer, Catch::EndsWith(c.body));
  }
  for (const char* target : {"/echo?a=%", "/echo?a=%4", "/echo?%zz=1", "/echo?a=%4g"}) {
    INFO(target);
    CHECK_THAT(ask(port, std::string("GET ") + target), Catch::StartsWith("HTTP/1.1 400"));
  }
}

TEST_CASE("a connection serves several requests") {
  const auto server = Server::start("127.0.0.1:0", routes());
  RawClient client((*server)->port());
  client.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = client.read_all();
  CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 200"));
  CHECK_THAT(answer, Catch::Contains("HTTP/1.1 503"));
}

TEST_CASE("garbage is answered and hung up on") {
  const auto server = Server::start("127.0.0.1:0", routes());
  RawClient client((*server)->port());
  client.send("\x16\x03\x01 this is no HTTP\r\n\r\n");
  CHECK_THAT(client.read_all(), Catch::StartsWith("HTTP/1.1 400"));
}

TEST_CASE("a request beyond the size limit is refused") {
  ServerLimits limits;
  limits.max_request_bytes = 1024;
  const auto server = Server::start("127.0.0.1:0", routes(), limits);
  RawClient client((*server)->port());
  client.send("GET /healthz HTTP/1.1\r\nX: " + std::string(4096, 'x') + "\r\n\r\n");
  CHECK_THAT(client.read_all(), !Catch::Contains("200"));
}

TEST_CASE("a client that sends nothing is hung up on") {
  ServerLimits limits;
  limits.read_time = std::chrono::milliseconds(50);
  const auto server = Server::start("127.0.0.1:0", routes(), limits);
  RawClient client((*server)->port());
  CHECK(client.read_all().empty());
}

TEST_CASE("connections beyond the limit are closed at once") {
  ServerLimits limits;
  limits.max_connections = 1;
  const auto server = Server::start("127.0.0.1:0", routes(), limits);
  RawClient first((*server)->port());
  RawClient second((*server)->port());
  CHECK(second.read_all().empty());
  first.send("GET /healthz HTTP/1.0\r\n\r\n");
  CHECK_THAT(first.read_all(), Catch::Contains("200"));
}

TEST_CASE("stopping closes open connections") {
  auto server = Server::start("127.0.0.1:0", routes());
  RawClient client((*server)->port());
  server->reset();
  CHECK(client.read_all().empty());
}

TEST_CASE("addresses that cannot be used are errors with the reason") {
  for (const char* address : {"", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:x", "::1"}) {
    INFO(address);
    const auto server = Server::start(address, {});
    REQUIRE_FALSE(server.ok());
    CHECK(server.error().code() == ErrorCode::kInvalidArgument);
  }
  const auto first = Server::start("127.0.0.1:0", {});
  const auto second = Server::start("127.0.0.1:" + std::to_string((*first)->port()), {});
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().code() == ErrorCode::kUnavailable);
  CHECK_THAT(second.error().message(), Catch::Contains("in use"));
}

}  // namespace
}  // namespace sluice::http
