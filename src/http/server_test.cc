#include "src/http/server.h"

#include <sys/resource.h>
#include <unistd.h>
#include <ctime>
#include <thread>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/http/testing/raw_client.h"

namespace sluice::http {
namespace {

using testing::ask;
using testing::RawClient;

Routes routes() {
  return {{"/healthz",
           [](const Query&) {
             return Page{200, "text/plain", "ok\n"};
           }},
          {"/readyz",
           [](const Query&) {
             return Page{503, "text/plain", "not yet\n"};
           }},
          {"/broken", [](const Query&) -> Page { throw std::runtime_error("type must be array"); }},
          {"/echo", [](const Query& query) {
             Page page;
             for (const auto& [name, value] : query) page.body += "[" + name + "=" + value + "]";
             return page;
           }}};
}

TEST_CASE("a page that throws is a page that says so, and the next one comes") {
  const auto server = Server::start("127.0.0.1:0", routes());
  REQUIRE(server.ok());
  CHECK_THAT(ask((*server)->port(), "GET /broken"), Catch::StartsWith("HTTP/1.1 500"));
  CHECK_THAT(ask((*server)->port(), "GET /healthz"), Catch::StartsWith("HTTP/1.1 200"));
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

TEST_CASE("a page sees the query behind the question mark, decoded") {
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

TEST_CASE("connections that say nothing keep no other from an answer") {
  const auto server = Server::start("127.0.0.1:0", routes());
  std::vector<RawClient> silent;
  for (int i = 0; i < 4 * static_cast<int>(ServerLimits().max_connections); ++i) silent.emplace_back((*server)->port());
  for (int i = 0; i < 3; ++i) CHECK_THAT(ask((*server)->port(), "GET /healthz"), Catch::Contains("200"));
  // No more than the limit are open, and it is the oldest that had to go.
  CHECK(silent.front().read_all().empty());
}

TEST_CASE("clients that ask for more than they read keep no other from an answer") {
  constexpr std::size_t kMoreThanTheSystemKeeps = 32u << 20;
  Routes pages = routes();
  pages["/large"] = [](const Query&) { return Page{200, "text/plain", std::string(kMoreThanTheSystemKeeps, 'x')}; };
  ServerLimits limits;
  limits.max_connections = 4;
  const auto server = Server::start("127.0.0.1:0", pages, limits);
  std::vector<RawClient> deaf;
  for (std::size_t i = 0; i < 3 * limits.max_connections; ++i) {
    deaf.emplace_back((*server)->port());
    deaf.back().send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  CHECK_THAT(ask((*server)->port(), "GET /healthz"), Catch::Contains("200"));
  CHECK(deaf.front().read_all().size() < kMoreThanTheSystemKeeps);
}

TEST_CASE("the connection that was silent longest gives its place to the next one") {
  ServerLimits limits;
  limits.max_connections = 2;
  const auto server = Server::start("127.0.0.1:0", routes(), limits);
  RawClient busy((*server)->port()), silent((*server)->port());
  for (RawClient* client : {&silent, &busy}) {
    client->send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK_THAT(client->read_some(), Catch::Contains("200"));
  }
  CHECK_THAT(ask((*server)->port(), "GET /healthz"), Catch::Contains("200"));
  CHECK(silent.read_all().empty());
  busy.send("GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  CHECK_THAT(busy.read_all(), Catch::Contains("503"));
}

TEST_CASE("a request that never ends is hung up on, however its bytes trickle") {
  ServerLimits limits;
  limits.read_time = std::chrono::milliseconds(300);
  const auto server = Server::start("127.0.0.1:0", routes(), limits);
  RawClient trickling((*server)->port());
  trickling.send("GET /healthz HTTP/1.1\r\nX: ");
  const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (trickling.send("x") && std::chrono::steady_clock::now() < give_up_at)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(std::chrono::steady_clock::now() < give_up_at);
  CHECK(trickling.read_all().empty());
  CHECK_THAT(ask((*server)->port(), "GET /healthz"), Catch::Contains("200"));
}

TEST_CASE("a request that is not admitted gets no page, and the reason") {
  int made = 0;
  const Routes pages = {{"/plan", [&made](const Query&) {
                           ++made;
                           return Page{.body = "the plan\n"};
                         }}};
  const auto server = Server::start("127.0.0.1:0", pages, {}, [](const std::string& token) -> Result<void> {
    if (token == "broken") throw std::runtime_error("type must be array");
    if (token == "good") return {};
    if (token == "other") return Error(ErrorCode::kPermissionDenied, "not for you");
    if (token == "fast") return Error(ErrorCode::kResourceExhausted, "too many questions");
    if (token == "lost") return unavailable("the API server did not answer");
    return Error(ErrorCode::kUnauthenticated, "who are you?");
  });
  struct Case {
    const char* header;
    const char* status;
    const char* body;
  };
  for (const Case& c :
       {Case{"", "HTTP/1.1 401", "who are you?\n"}, Case{"Sluice-Token: \r\n", "HTTP/1.1 401", "who are you?\n"},
        Case{"Sluice-Token: other\r\n", "HTTP/1.1 403", "not for you\n"},
        Case{"sluice-token: fast\r\n", "HTTP/1.1 429", "too many questions\n"},
        Case{"Sluice-Token: lost\r\n", "HTTP/1.1 503", "the API server did not answer\n"},
        Case{"Sluice-Token: broken\r\n", "HTTP/1.1 503", "type must be array\n"}}) {
    INFO(c.header);
    const std::string answer = ask((*server)->port(), "GET /plan", c.header);
    CHECK_THAT(answer, Catch::StartsWith(c.status));
    CHECK_THAT(answer, Catch::EndsWith(c.body));
  }
  CHECK(made == 0);
  CHECK_THAT(ask((*server)->port(), "GET /plan", "Sluice-Token: good\r\n"), Catch::EndsWith("the plan\n"));
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// All file descriptors that the process may still have.
class TakenDescriptors {
 public:
  TakenDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{std::min<rlim_t>(before_.rlim_cur, 256), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (int copy = 0; (copy = dup(STDOUT_FILENO)) >= 0;) taken_.push_back(copy);
  }
  ~TakenDescriptors() {
    while (!taken_.empty()) give_back_one();
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  void give_back_one() {
    close(taken_.back());
    taken_.pop_back();
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

TEST_CASE("a server without file descriptors waits for some, and takes no processor meanwhile") {
  const auto server = Server::start("127.0.0.1:0", routes());
  REQUIRE(server.ok());
  REQUIRE_THAT(ask((*server)->port(), "GET /healthz"), Catch::StartsWith("HTTP/1.1 200"));  // its thread runs
  std::optional<RawClient> client;
  double used_seconds = 0;
  {
    TakenDescriptors taken;
    taken.give_back_one();
    client.emplace((*server)->port());  // with the last one: none is left for the server's side
    client->send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const double before_seconds = processor_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    used_seconds = processor_seconds() - before_seconds;
  }
  CHECK(used_seconds < 0.2);
  CHECK_THAT(client->read_all(), Catch::StartsWith("HTTP/1.1 200"));
}

TEST_CASE("stopping closes open connections") {
  auto server = Server::start("127.0.0.1:0", routes());
  RawClient client((*server)->port());
  server->reset();
  CHECK(client.read_all().empty());
}

TEST_CASE("every address is one of IPv4 and one of IPv6, where the machine has it") {
  const auto server = Server::start("[::]:0", routes());
  REQUIRE(server.ok());
  CHECK_THAT(ask((*server)->port(), "GET /healthz"), Catch::StartsWith("HTTP/1.1 200"));
  RawClient client = RawClient::over_ipv6((*server)->port());
  client.send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  CHECK(client.read_all().starts_with("HTTP/1.1 200") == testing::has_ipv6());
}

TEST_CASE("addresses that cannot be used are errors with the reason") {
  for (const char* address :
       {"", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:x", "::1", "::1:0"}) {
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
