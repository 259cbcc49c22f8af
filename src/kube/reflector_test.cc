#include "src/kube/reflector.h"

#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/testing/scripted_transport.h"
#include "src/kube/testing/objects.h"
#include "src/kube/watch.h"

// The reflector is a state machine: each test says what came of its last wish, and reads off its next one.
namespace sluice::kube {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using Kind = ReflectorStep::Kind;

class RecordingTarget final : public ReflectorTarget {
 public:
  void collect(ObjectPointer object) override {
    check(*object);
    collected.insert(key_of(*object).name);
  }
  void uncollect(const ObjectKey& key) override { collected.erase(key.name); }
  void discard() override { collected.clear(); }
  void replace() override {
    std::string text = "replace";
    for (const std::string& name : collected) text += " " + name;
    notes.push_back(text);
    collected.clear();
  }
  void upsert(ObjectPointer object) override {
    check(*object);
    notes.push_back("upsert " + key_of(*object).name);
  }
  void remove(const ObjectKey& key, ObjectPointer last_state) override {
    check(*last_state);
    notes.push_back("remove " + key.name);
  }
  void reached(const std::string& resource_version) override { version = resource_version; }

  std::set<std::string> collected;
  std::vector<std::string> notes;
  std::string version;
  bool saw_spec = false;

 private:
  void check(const Json& object) { saw_spec |= object.contains("spec"); }
};

struct Fixture {
  using Notes = std::vector<std::string>;
  sluice::testing::ManualClock clock;
  RecordingTarget target;
  ReflectorOptions options;
  std::optional<Reflector> machine;

  Reflector& reflector() {
    if (!machine)
      machine.emplace(
          clock, [] { return 0.5; }, kPods, options, target);
    return *machine;
  }
  // A reflector that has listed up to `version` without the initial watch.
  void start_with_list(std::initializer_list<Json> items, int version) {
    options.stream_initial_list = false;
    REQUIRE(reflector().next().kind == Kind::kList);
    reflector().on_page(page(items, version));
  }
  static ObjectList page(std::initializer_list<Json> items, int version, const std::string& continuation = "") {
    return {std::vector<Json>(items), std::to_string(version), continuation};
  }
  ReflectorStep expect(Kind kind) {
    ReflectorStep step = reflector().next();
    REQUIRE(step.kind == kind);
    return step;
  }
  std::string expect_watch_from() { return expect(Kind::kWatch).watch.resource_version; }
  // Jitter 0.5: 1.5 times the nominal pause.
  void expect_pause(std::chrono::milliseconds pause) { CHECK(expect(Kind::kPause).pause == pause); }
  Result<void> tell(WatchEventType type, const Json& object) { return reflector().on_event({type, object}); }
  void added(const Json& object) { CHECK(tell(WatchEventType::kAdded, object).ok()); }
  static Json mark(int version, bool is_end = true) {
    Json bookmark{{"metadata", {{"resourceVersion", std::to_string(version)}}}};
    if (is_end) bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true";
    return bookmark;
  }
  void end(ErrorCode code) { reflector().on_watch_end(Error(code, "because")); }
};

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

TEST_CASE_METHOD(Fixture, "while the server is away the stream is asked for again after growing pauses") {
  for (const auto pause : {1200ms, 2400ms}) {
    CHECK(expect(Kind::kWatch).watch.initial_events);
    end(pause == 1200ms ? ErrorCode::kUnavailable : ErrorCode::kResourceExhausted);
    expect_pause(pause);
  }
  CHECK(expect(Kind::kWatch).watch.initial_events);
}

TEST_CASE_METHOD(
    Fixture,
    "a stream that breaks off or goes silent is replaced by a list after a pause, and its objects are forgotten") {
  expect(Kind::kWatch);
  SECTION("lost") {
    added(pod("half", 1));
    end(ErrorCode::kUnavailable);
  }
  SECTION("ended") {
    added(pod("half", 1));
    reflector().on_watch_end({});
  }
  SECTION("silent") { end(ErrorCode::kDeadlineExceeded); }
  SECTION("garbage") { end(ErrorCode::kDataLoss); }
  expect_pause(1200ms);
  expect(Kind::kList);
  reflector().on_page(page({pod("a", 1)}, 5));
  CHECK(target.notes == Notes{"replace a"});
  CHECK(expect_watch_from() == "5");
  end(ErrorCode::kGone);
  CHECK(expect(Kind::kWatch).watch.initial_events);  // it may work the next time
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

TEST_CASE_METHOD(Fixture, "failed lists are repeated with growing pauses, and nothing is replaced meanwhile") {
  options.stream_initial_list = false;
  for (const auto pause : {1200ms, 2400ms, 4800ms}) {
    expect(Kind::kList);
    reflector().on_page(Error(ErrorCode::kPermissionDenied, "no"));
    expect_pause(pause);
  }
  CHECK(target.notes.empty());
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

TEST_CASE_METHOD(Fixture, "Gone lists at once; again without an event in between, only after a pause") {
  start_with_list({}, 5);
  expect(Kind::kWatch);
  end(ErrorCode::kGone);
  expect(Kind::kList);
  reflector().on_page(page({}, 6));
  expect(Kind::kWatch);
  end(ErrorCode::kGone);
  expect_pause(1200ms);
  expect(Kind::kList);
  reflector().on_page(page({}, 7));
  expect(Kind::kWatch);
  added(pod("a", 8));
  end(ErrorCode::kGone);
  expect(Kind::kList);
}

TEST_CASE_METHOD(Fixture, "a refused or throttled watch is tried again after a pause, without a list") {
  start_with_list({}, 5);
  std::chrono::milliseconds pause = 1200ms;
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kResourceExhausted, ErrorCode::kDeadlineExceeded}) {
    CHECK(expect_watch_from() == "5");
    end(code);
    expect_pause(pause);
    pause *= 2;
  }
  CHECK(expect_watch_from() == "5");
}

TEST_CASE_METHOD(Fixture, "a connection that is cut when it was idle for a while is made again at once") {
  start_with_list({}, 5);
  for (int cut = 0; cut < 20; ++cut) {
    CHECK(expect_watch_from() == "5");
    clock.advance(10s);
    end(ErrorCode::kUnavailable);
  }
  CHECK(expect_watch_from() == "5");
}

TEST_CASE_METHOD(Fixture,
                 "a watch without a byte for its silence limit leads to a list in pages, as a proxy holds it back") {
  expect(Kind::kWatch);
  CHECK(tell(WatchEventType::kBookmark, mark(5)).ok());
  reflector().on_watch_end({});
  expect(Kind::kWatch);
  clock.advance(150s);
  end(ErrorCode::kDeadlineExceeded);
  expect(Kind::kList);
  reflector().on_page(page({pod("a", 6)}, 7));
  CHECK(target.notes.back() == "replace a");
  CHECK(expect_watch_from() == "7");
}

TEST_CASE_METHOD(Fixture, "where watches alone are refused, every tenth time a list in pages is asked for") {
  const bool listed_before = GENERATE(false, true);
  if (listed_before) {
    expect(Kind::kWatch);
    CHECK(tell(WatchEventType::kBookmark, mark(5)).ok());
    reflector().on_watch_end({});
  }
  for (int round = 0; round < 2; ++round) {
    for (int failed = 0; failed < 10; ++failed) {
      CHECK(expect(Kind::kWatch).watch.initial_events == (!listed_before && round == 0));
      end(failed % 2 == 0 ? ErrorCode::kUnavailable : ErrorCode::kResourceExhausted);
      expect(Kind::kPause);
    }
    expect(Kind::kList);
    reflector().on_page(page({}, 6));
  }
}

TEST_CASE_METHOD(Fixture,
                 "a second bookmark from before what was seen leads to a list, as a backup may have come back") {
  start_with_list({pod("a", 9)}, 100);
  CHECK(expect_watch_from() == "100");
  CHECK(tell(WatchEventType::kBookmark, mark(50, false)).ok());
  added(pod("b", 101));  // it was a cache that lagged
  CHECK(tell(WatchEventType::kBookmark, mark(51, false)).ok());
  const auto ended = tell(WatchEventType::kBookmark, mark(52, false));
  REQUIRE_FALSE(ended.ok());
  reflector().on_watch_end(ended);
  expect(Kind::kList);
}

TEST_CASE_METHOD(Fixture, "after two healthy minutes the pauses start small again") {
  start_with_list({}, 5);
  for (const auto pause : {1200ms, 2400ms}) {
    expect(Kind::kWatch);
    end(ErrorCode::kUnavailable);
    expect_pause(pause);
  }
  expect(Kind::kWatch);
  clock.advance(121s);
  reflector().on_watch_end({});
  expect(Kind::kWatch);
  end(ErrorCode::kUnavailable);
  expect_pause(1200ms);
}

TEST_CASE_METHOD(Fixture, "a connection lost after events is made again at once, from the last event") {
  start_with_list({}, 5);
  expect(Kind::kWatch);
  added(pod("a", 6));
  end(ErrorCode::kUnavailable);
  CHECK(expect_watch_from() == "6");
}

TEST_CASE_METHOD(Fixture, "a watch that ends at once without an event leads to a pause and a new list") {
  start_with_list({}, 5);
  expect(Kind::kWatch);
  reflector().on_watch_end({});
  expect_pause(1200ms);
  expect(Kind::kList);
  reflector().on_page(page({}, 6));
  expect(Kind::kWatch);
  clock.advance(1s);  // long enough
  reflector().on_watch_end({});
  CHECK(expect_watch_from() == "6");
}

TEST_CASE_METHOD(Fixture, "a server that keeps failing on one version is asked for a list in the end") {
  start_with_list({}, 5);
  for (int i = 0; i < 5; ++i) {
    expect(Kind::kWatch);
    end(ErrorCode::kInternal);
    expect(Kind::kPause);
  }
  expect(Kind::kList);
}

TEST_CASE_METHOD(Fixture, "an unreadable event leads to a new list, a forbidden watch too") {
  start_with_list({}, 5);
  expect(Kind::kWatch);
  end(GENERATE(ErrorCode::kDataLoss, ErrorCode::kPermissionDenied));
  expect_pause(1200ms);
  expect(Kind::kList);
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

TEST_CASE_METHOD(Fixture, "a list older than what was seen is refused, until the server insists") {
  const bool streams = GENERATE(false, true);
  options.stream_initial_list = streams;
  const auto give = [&](int version) {
    const ReflectorStep step = expect(streams ? Kind::kWatch : Kind::kList);
    if (!streams) return reflector().on_page(page({}, version));
    CHECK(step.watch.initial_events);
    if (const auto told = tell(WatchEventType::kBookmark, mark(version)); !told.ok()) reflector().on_watch_end(told);
  };
  give(100);
  if (!streams) expect(Kind::kWatch);
  end(ErrorCode::kGone);
  for (int i = 0; i < 10; ++i) {
    give(99);
    expect(Kind::kPause);
  }
  CHECK(target.notes.size() == 1);
  CHECK(reflector().resource_version() == "100");
  give(99);  // its history was restored from a backup, it seems
  CHECK(target.notes.size() == 2);
  CHECK(reflector().resource_version() == "99");
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
