#include "src/http/retry.h"

#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/testing/scripted_transport.h"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::ScriptedTransport;

struct Fixture {
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>();
  sluice::testing::ManualClock clock;
  std::shared_ptr<Transport> transport = with_retries(server, clock, {.max_retries = 2, .max_wait = 10s});

  // The status in the end; every pause must be as long as `pauses` says.
  int send(std::initializer_list<std::chrono::seconds> pauses) {
    int status = 0;
    std::thread sender([&] {
      status = transport->send({"POST", "/x", {}, "body"}, 1s, {}).value_or(Response{}).status;
    });
    std::size_t made = 0;
    for (const auto pause : pauses) {
      CHECK(server->wait_for_requests(++made));
      clock.wait_for_sleepers(1);
      clock.advance(pause - 1ms);
      CHECK(server->requests().size() == made);
      clock.advance(1ms);
    }
    sender.join();
    return status;
  }
};

TEST_CASE_METHOD(Fixture, "a server that says when to come back is asked again then, a bounded number of times") {
  SECTION("throttled, then not") {
    server->answer(429, "", {{"Retry-After", "3"}});
    server->answer(201, "made");
    CHECK(send({3s}) == 201);
  }
  SECTION("overloaded for too long") {
    for (int i = 0; i < 3; ++i) server->answer(503, "", {{"retry-after", "1"}});
    CHECK(send({1s, 1s}) == 503);
  }
  SECTION("a very long pause is cut") {
    server->answer(500, "", {{"Retry-After", "3600"}});
    server->answer(200, "");
    CHECK(send({10s}) == 200);
  }
}

TEST_CASE_METHOD(Fixture, "nothing else is repeated") {
  SECTION("no header") { server->answer(503, ""); }
  SECTION("not the server's trouble") { server->answer(409, "", {{"Retry-After", "1"}}); }
  SECTION("a date, which no API server sends") {
    server->answer(503, "", {{"Retry-After", "Sat, 21 Nov 2026 08:00:00 GMT"}});
  }
  SECTION("a connection lost: the outcome is unknown") { server->answer(unavailable("lost")); }
  send({});
  CHECK(server->requests().size() == 1);
}

TEST_CASE_METHOD(Fixture, "a stop request ends the pause") {
  server->answer(429, "", {{"Retry-After", "3"}});
  std::stop_source stop;
  Result<Response> response = internal_error("unset");
  std::thread sender([&] { response = transport->send({}, 1s, stop.get_token()); });
  clock.wait_for_sleepers(1);
  stop.request_stop();
  sender.join();
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().code() == ErrorCode::kCancelled);
}

}  // namespace
}  // namespace sluice::http
