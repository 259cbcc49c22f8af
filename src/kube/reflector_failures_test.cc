// What a reflector does when lists and watches fail, end, go silent or tell of the past.
#include "src/base/testing/catch.h"
#include "src/kube/testing/reflector_bench.h"

namespace sluice::kube {
namespace {

using namespace testing;
using Fixture = ReflectorBench;

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

TEST_CASE_METHOD(Fixture, "failed lists are repeated with growing pauses, and nothing is replaced meanwhile") {
  options.stream_initial_list = false;
  for (const auto pause : {1200ms, 2400ms, 4800ms}) {
    expect(Kind::kList);
    reflector().on_page(Error(ErrorCode::kPermissionDenied, "no"));
    expect_pause(pause);
  }
  CHECK(target.notes.empty());
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

}  // namespace
}  // namespace sluice::kube
