#include "src/kube/reflector.h"

#include <mutex>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/testing/scripted_transport.h"
#include "src/kube/testing/objects.h"

// Each test scripts what the server does and reads off the requests what the reflector did. The script's last answer is
// always a silent stream, so that the reflector is at rest when the test looks.
namespace sluice::kube {
namespace {

using namespace std::chrono_literals;
using http::testing::ScriptedStream;
using http::testing::ScriptedTransport;
using namespace testing;

class RecordingTarget final : public ReflectorTarget {
 public:
  void replace(std::vector<ObjectPointer> objects) override {
    std::string text = "replace";
    for (const auto& object : objects) text += " " + key_of(*object).name;
    note(text);
    for (const auto& object : objects) check(*object);
  }
  void upsert(ObjectPointer object) override {
    check(*object);
    note("upsert " + key_of(*object).name);
  }
  void remove(const ObjectKey& key, ObjectPointer last_state) override {
    check(*last_state);
    note("remove " + key.name);
  }
  std::vector<std::string> notes() const {
    std::lock_guard lock(mutex_);
    return notes_;
  }
  bool saw_managed_fields() const {
    std::lock_guard lock(mutex_);
    return managed_fields_;
  }

 private:
  void note(std::string text) {
    std::lock_guard lock(mutex_);
    notes_.push_back(std::move(text));
  }
  void check(const Json& object) {
    std::lock_guard lock(mutex_);
    managed_fields_ |= object["metadata"].contains("managedFields");
  }
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
  bool managed_fields_ = false;
};

const ScriptedStream kSilence{{}, ScriptedStream::Ending::kSilence};

struct Fixture {
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>();
  sluice::testing::ManualClock clock;
  Client client{server, clock};
  RecordingTarget target;
  Reflector reflector{client, clock, [] { return 0.5; }, kPods, {}, target};
  std::jthread thread;

  void start() {
    thread = std::jthread([this](std::stop_token stop) { reflector.run(stop); });
  }
  // The n-th request, once it was made.
  std::string asked(std::size_t index) {
    REQUIRE(server->wait_for_requests(index + 1));
    return server->requests().at(index).target;
  }
  // Lets the pause pass in which the reflector is now, and checks its length (jitter 0.5: 1.5 times the nominal one).
  void let_pass(std::chrono::milliseconds pause) {
    clock.wait_for_sleepers(1);
    const auto before = server->requests().size();
    clock.advance(pause - 1ms);
    CHECK(server->requests().size() == before);
    clock.advance(1ms);
    REQUIRE(server->wait_for_requests(before + 1));
  }
  bool is_list(const std::string& target_text) { return target_text.find("watch=true") == std::string::npos; }
};

TEST_CASE_METHOD(Fixture, "lists from the cache, then watches from the list's version, not from an item's") {
  server->answer(200, list_of({pod("a", 3), pod("b", 999)}, 10));
  server->answer(kSilence);
  start();
  CHECK(asked(0) == "/api/v1/pods?resourceVersion=0");
  CHECK(asked(1) == "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds=450");
  CHECK(target.notes() == std::vector<std::string>{"replace a b"});
  CHECK_FALSE(target.saw_managed_fields());
}

TEST_CASE_METHOD(Fixture, "events move the version on, bookmarks included, as opaque text") {
  server->answer(200, list_of({pod("a", 9)}, 9));
  server->answer(ScriptedStream{{event("MODIFIED", pod("a", 10)), event("ADDED", pod("b", 11))}});
  server->answer(ScriptedStream{{event("DELETED", pod("a", 12)), bookmark(100)}});
  server->answer(kSilence);
  start();
  CHECK_THAT(asked(2), Catch::Contains("resourceVersion=11&"));
  CHECK_THAT(asked(3), Catch::Contains("resourceVersion=100&"));
  CHECK(target.notes() == std::vector<std::string>{"replace a", "upsert a", "upsert b", "remove a"});
  CHECK_FALSE(target.saw_managed_fields());
}

TEST_CASE_METHOD(Fixture, "410, as a status or as an event, lists the most recent state at once") {
  const bool as_event = GENERATE(true, false);
  server->answer(200, list_of({pod("a", 1)}, 1));
  if (as_event) {
    server->answer(ScriptedStream{{event("ERROR", status(410, "Expired"))}});
  } else {
    server->answer(410, status(410, "Gone").dump());
  }
  server->answer(200, list_of({pod("b", 20)}, 20));
  server->answer(kSilence);
  start();
  CHECK(asked(2) == "/api/v1/pods?limit=500");
  CHECK_THAT(asked(3), Catch::Contains("resourceVersion=20&"));
  CHECK(target.notes() == std::vector<std::string>{"replace a", "replace b"});
}

TEST_CASE_METHOD(Fixture, "a list that the server cannot give at that version is asked for once more without one") {
  Json too_large = status(504, "Timeout");
  too_large["details"]["causes"] = Json::array({{{"reason", "ResourceVersionTooLarge"}}});
  server->answer(504, too_large.dump());
  server->answer(200, list_of({}, 5));
  server->answer(kSilence);
  start();
  CHECK(asked(1) == "/api/v1/pods?limit=500");
  CHECK_THAT(asked(2), Catch::Contains("resourceVersion=5&"));
}

TEST_CASE_METHOD(Fixture, "a refused or throttled watch is tried again after a pause, without a list") {
  server->answer(200, list_of({}, 5));
  server->answer(unavailable("connection refused"));
  server->answer(429, status(429, "TooManyRequests").dump());
  server->answer(503, "");
  server->answer(kSilence);
  start();
  REQUIRE(server->wait_for_requests(2));
  let_pass(1200ms);
  let_pass(2400ms);
  let_pass(4800ms);
  for (std::size_t i = 1; i <= 4; ++i) CHECK_THAT(asked(i), Catch::Contains("resourceVersion=5&"));
}

TEST_CASE_METHOD(Fixture, "a connection lost after events is made again at once, from the last event") {
  server->answer(200, list_of({}, 5));
  server->answer(ScriptedStream{{event("ADDED", pod("a", 6))}, ScriptedStream::Ending::kFail});
  server->answer(kSilence);
  start();
  CHECK_THAT(asked(2), Catch::Contains("resourceVersion=6&"));
}

TEST_CASE_METHOD(Fixture, "a watch that ends at once without an event leads to a pause and a new list") {
  server->answer(200, list_of({}, 5));
  server->answer(ScriptedStream{});
  server->answer(200, list_of({pod("a", 7)}, 8));
  server->answer(kSilence);
  start();
  REQUIRE(server->wait_for_requests(2));
  let_pass(1200ms);
  CHECK(asked(2) == "/api/v1/pods?resourceVersion=5");  // at least what we have seen, and no limit: that is exact
  CHECK_THAT(asked(3), Catch::Contains("resourceVersion=8&"));
}

TEST_CASE_METHOD(Fixture, "a server that keeps failing on one version is asked for a list in the end") {
  server->answer(200, list_of({}, 5));
  for (int i = 0; i < 5; ++i) server->answer(500, status(500, "InternalError").dump());
  server->answer(200, list_of({}, 9));
  server->answer(kSilence);
  start();
  for (int i = 0; i < 5; ++i) {
    clock.wait_for_sleepers(1);
    clock.advance(100s);
    REQUIRE(server->wait_for_requests(static_cast<std::size_t>(i) + 3));
  }
  CHECK_FALSE(is_list(asked(5)));
  CHECK(is_list(asked(6)));
}

TEST_CASE_METHOD(Fixture, "an unreadable event leads to a new list, a forbidden watch too") {
  const bool forbidden = GENERATE(true, false);
  server->answer(200, list_of({}, 5));
  if (forbidden) {
    server->answer(403, status(403, "Forbidden").dump());
  } else {
    server->answer(ScriptedStream{{"garbage\n"}});
  }
  server->answer(200, list_of({}, 9));
  server->answer(kSilence);
  start();
  REQUIRE(server->wait_for_requests(2));
  let_pass(1200ms);
  CHECK(is_list(asked(2)));
}

TEST_CASE_METHOD(Fixture, "failed lists are repeated with growing pauses, and nothing is replaced meanwhile") {
  server->answer(unavailable("connection refused"));
  server->answer(403, status(403, "Forbidden").dump());
  server->answer(200, list_of({}, 1));
  server->answer(kSilence);
  start();
  REQUIRE(server->wait_for_requests(1));
  let_pass(1200ms);
  CHECK(target.notes().empty());
  let_pass(2400ms);
  CHECK_THAT(asked(3), Catch::Contains("watch=true"));
  CHECK(target.notes() == std::vector<std::string>{"replace"});
}

TEST_CASE_METHOD(Fixture, "a stop request ends it wherever it is") {
  SECTION("in a watch") {
    server->answer(200, list_of({}, 1));
    server->answer(kSilence);
    start();
    REQUIRE(server->wait_for_requests(2));
  }
  SECTION("in a pause") {
    server->answer(unavailable("connection refused"));
    start();
    clock.wait_for_sleepers(1);
  }
  thread.request_stop();
  thread.join();
}

}  // namespace
}  // namespace sluice::kube
