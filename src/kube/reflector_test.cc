#include "src/kube/reflector.h"

#include <thread>

#include "src/base/testing/catch.h"
#include "src/http/testing/scripted_transport.h"
#include "src/kube/testing/reflector_bench.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using Fixture = ReflectorBench;

TEST_CASE_METHOD(Fixture,
                 "the collection comes as a watch, is complete when the server says so, and the watch goes on") {
  const WatchOptions watch = expect(Kind::kWatch).watch;
  CHECK(watch.initial_events);
  CHECK(watch.resource_version.empty());
  CHECK(watch.timeout == 450s);
  added(pod("b", 7));
  added(pod("a", 3));
  CHECK(tell(WatchEventType::kModified, pod("a", 8)).ok());
  added(pod("c", 2));
  CHECK(tell(WatchEventType::kDeleted, pod("c", 9)).ok());
  CHECK(target.notes.empty());
  CHECK(tell(WatchEventType::kBookmark, mark(10)).ok());
  CHECK(target.notes == Notes{"replace a b"});
  CHECK(reflector().resource_version() == "10");
  CHECK(target.version == "10");

  added(pod("d", 11));
  CHECK(target.notes.back() == "upsert d");
  reflector().on_watch_end({});
  CHECK(expect_watch_from() == "11");
}

TEST_CASE_METHOD(Fixture,
                 "a server that refuses to stream the collection is asked for a list, and not for a stream again") {
  SECTION("it says so") {
    expect(Kind::kWatch);
    end(ErrorCode::kInvalidArgument);
  }
  SECTION("it ignores the request and sends an ordinary bookmark") {
    expect(Kind::kWatch);
    added(pod("a", 1));
    const auto ended = tell(WatchEventType::kBookmark, mark(5, false));
    REQUIRE_FALSE(ended.ok());
    reflector().on_watch_end(ended);
  }
  CHECK(target.notes.empty());
  CHECK(expect(Kind::kList).list.resource_version.empty());
  reflector().on_page(page({pod("a", 1)}, 5));
  CHECK_FALSE(expect(Kind::kWatch).watch.initial_events);
  end(ErrorCode::kGone);
  expect(Kind::kList);
}

TEST_CASE_METHOD(Fixture, "a list comes in pages, and starts over when its history expires in between") {
  options.stream_initial_list = false;
  CHECK(expect(Kind::kList).list.page_size > 0);
  reflector().on_page(page({pod("a", 1)}, 5, "more"));
  CHECK(expect(Kind::kList).list.continuation == "more");
  reflector().on_page(Error(ErrorCode::kGone, "expired"));
  CHECK(expect(Kind::kList).list.continuation.empty());
  reflector().on_page(page({pod("a", 6)}, 7, "more"));
  expect(Kind::kList);
  CHECK(target.notes.empty());
  reflector().on_page(page({pod("b", 3)}, 7));
  CHECK(target.notes == Notes{"replace a b"});
  CHECK(expect_watch_from() == "7");
}

TEST_CASE_METHOD(Fixture, "the watch begins at the list's version, not at an item's") {
  start_with_list({pod("a", 3), pod("b", 999)}, 10);
  CHECK(expect_watch_from() == "10");
}

TEST_CASE_METHOD(Fixture, "events move the version on, bookmarks included, as numbers of any length") {
  start_with_list({pod("a", 9)}, 9);
  expect(Kind::kWatch);
  CHECK(tell(WatchEventType::kModified, pod("a", 10)).ok());
  CHECK(tell(WatchEventType::kDeleted, pod("a", 11)).ok());
  reflector().on_watch_end({});
  CHECK(expect_watch_from() == "11");
  CHECK(tell(WatchEventType::kBookmark, mark(100, false)).ok());
  reflector().on_watch_end({});
  CHECK(expect_watch_from() == "100");
  CHECK(target.version == "100");
  CHECK(target.notes == Notes{"replace a", "upsert a", "remove a"});
}

TEST_CASE_METHOD(Fixture, "an event from before what was seen is no news") {
  start_with_list({pod("a", 9)}, 100);
  expect(Kind::kWatch);
  CHECK(tell(WatchEventType::kDeleted, pod("a", 99)).ok());
  CHECK(tell(WatchEventType::kBookmark, mark(50, false)).ok());
  reflector().on_watch_end({});
  CHECK(expect_watch_from() == "100");
  CHECK(target.notes == Notes{"replace a"});
}

TEST_CASE_METHOD(Fixture, "fields that are not read are removed from every object before it is kept") {
  options.trim = [](Json& object) { object.erase("spec"); };
  const auto large = [](const char* name, int version) {
    Json object = pod(name, version);
    object["spec"] = "much";
    return object;
  };
  start_with_list({large("a", 1)}, 5);
  expect(Kind::kWatch);
  added(large("b", 6));
  CHECK(tell(WatchEventType::kDeleted, large("b", 7)).ok());
  CHECK_FALSE(target.saw_spec);
}

struct Running {
  std::shared_ptr<http::testing::ScriptedTransport> server = std::make_shared<http::testing::ScriptedTransport>();
  sluice::testing::ManualClock clock;
  Client client{server, clock};
  RecordingTarget target;
  Reflector reflector{clock, [] { return 0.5; }, kPods, {}, target};
  std::jthread thread;

  void start() {
    thread = std::jthread([this](std::stop_token stop) { run_reflector(reflector, client, clock, stop); });
  }
  std::string asked(std::size_t index) {
    REQUIRE(server->wait_for_requests(index + 1));
    return server->requests().at(index).target;
  }
};

TEST_CASE_METHOD(Running, "the loop streams, falls back to pages, watches, and pauses on its clock") {
  using http::testing::ScriptedStream;
  server->answer(422, status(422, "Invalid").dump());
  server->answer(200, list_of({pod("a", 1)}, 5, "more"));
  server->answer(200, list_of({pod("b", 2)}, 5));
  server->answer(unavailable("connection refused"));
  server->answer(ScriptedStream{{event("ADDED", pod("c", 6))}, ScriptedStream::Ending::kSilence});
  start();
  CHECK(asked(0) ==
        "/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&timeoutSeconds=450");
  CHECK(asked(1) == "/api/v1/pods?limit=500");
  CHECK(asked(2) == "/api/v1/pods?limit=500&continue=more");
  CHECK(asked(3) == "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=450");
  clock.wait_for_sleepers(1);
  clock.advance(1200ms);
  CHECK_THAT(asked(4), Catch::Contains("resourceVersion=5&"));
  thread.request_stop();
  thread.join();
  CHECK(target.notes == std::vector<std::string>{"replace a b", "upsert c"});
}

TEST_CASE_METHOD(Running, "a stop request ends the loop in a pause, too") {
  server->answer(unavailable("connection refused"));
  start();
  clock.wait_for_sleepers(1);
  thread.request_stop();
  thread.join();
}

}  // namespace
}  // namespace sluice::kube
