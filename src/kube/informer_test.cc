#include "src/kube/informer.h"

#include <atomic>
#include <mutex>
#include <stdexcept>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/testing/scripted_transport.h"
#include "src/kube/testing/objects.h"
#include "src/kube/watch.h"
#include "src/kube/work_queue.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;
using http::testing::ScriptedStream;
using http::testing::ScriptedTransport;
using namespace testing;

const ScriptedStream kSilence{{}, ScriptedStream::Ending::kSilence};

struct InformedStore {
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>();
  sluice::testing::ManualClock clock;
  Client client{server, clock};
  std::mutex mutex;
  std::vector<std::string> changes;
  bool stored_before_told = true;
  Informer informer{client, clock, [] { return 0.0; }, kPods, {.stream_initial_list = false}};

  InformedStore() {
    informer.add_handler([this](const Change& change) {
      const auto& [key, before, after, is_initial] = change;
      std::lock_guard lock(mutex);
      changes.push_back((before ? after ? "change " : "delete " : is_initial ? "add " : "new ") + key.name);
      if (informer.store().get(key) != after) stored_before_told = false;
    });
  }
  std::vector<std::string> told() {
    std::lock_guard lock(mutex);
    return changes;
  }
};

TEST_CASE_METHOD(InformedStore, "has synced when the first list is in the store and was told") {
  server->answer(unavailable("connection refused"));
  server->answer(200, list_of({pod("a", 1), pod("b", 2)}, 5));
  server->answer(kSilence);
  CHECK_FALSE(informer.has_synced());
  informer.start();
  clock.wait_for_sleepers(1);
  CHECK_FALSE(informer.has_synced());
  clock.advance(1s);
  REQUIRE(informer.wait_for_sync({}));
  CHECK(told() == std::vector<std::string>{"add a", "add b"});
  CHECK(informer.store().size() == 2);
  CHECK((*informer.store().get({"ns", "a"}))["kind"] == "Pod");
  CHECK(informer.store().get({"ns", "c"}) == nullptr);
}

TEST_CASE_METHOD(InformedStore, "silence is counted from the last word of the server, a bookmark too") {
  clock.advance(7s);
  CHECK(informer.silent_for() == 7s);  // nothing yet
  Reflector& reflector = informer.reflector();
  reflector.next();
  reflector.on_page(ObjectList{{pod("a", 1)}, "5"});
  CHECK(informer.silent_for() == 0s);
  clock.advance(60s);
  CHECK(informer.silent_for() == 60s);
  reflector.next();
  const auto bookmark = Json::parse(R"({"kind":"Pod","metadata":{"resourceVersion":"9"}})");
  REQUIRE(reflector.on_event({WatchEventType::kBookmark, bookmark}).ok());
  CHECK(informer.silent_for() == 0s);
}

TEST_CASE_METHOD(InformedStore, "a handler that throws keeps nothing from the store and from the other handlers") {
  informer.add_handler([](const Change&) { throw std::runtime_error("type must be array"); });
  std::atomic<int> seen = 0;
  informer.add_handler([&](const Change&) { ++seen; });
  server->answer(200, list_of({pod("a", 1), pod("b", 2)}, 5));
  server->answer(kSilence);
  informer.start();
  REQUIRE(informer.wait_for_sync({}));
  CHECK(informer.store().size() == 2);
  CHECK(seen == 2);
}

TEST_CASE_METHOD(InformedStore, "waiting for a sync that never comes can be stopped") {
  server->answer(kSilence);
  std::stop_source stop;
  stop.request_stop();
  CHECK_FALSE(informer.wait_for_sync(stop.get_token()));
}

TEST_CASE_METHOD(InformedStore, "events change the store first and are told then, in order") {
  server->answer(200, list_of({pod("a", 1)}, 5));
  server->answer(ScriptedStream{{event("MODIFIED", pod("a", 6)), event("ADDED", pod("b", 7)),
                                 event("DELETED", pod("a", 8)), event("DELETED", pod("unknown", 9))}});
  server->answer(kSilence);
  informer.start();
  REQUIRE(server->wait_for_requests(3));
  CHECK(told() == std::vector<std::string>{"add a", "change a", "new b", "delete a"});
  CHECK(stored_before_told);
  CHECK(informer.store().snapshot().size() == 1);
}

TEST_CASE_METHOD(InformedStore, "a new list deletes what is missing, and tells only what changed") {
  server->answer(200, list_of({pod("same", 1), pod("changed", 2), pod("gone", 3), pod("reborn", 4, "first")}, 5));
  server->answer(410, status(410, "Expired").dump());
  server->answer(200, list_of({pod("same", 1), pod("changed", 20), pod("new", 21), pod("reborn", 4, "second")}, 30));
  server->answer(kSilence);
  informer.start();
  REQUIRE(server->wait_for_requests(4));
  const auto all = told();
  const std::vector<std::string> after_sync(all.begin() + 4, all.end());
  CHECK(after_sync == std::vector<std::string>{"delete gone", "change changed", "new new", "change reborn"});
  CHECK(stored_before_told);
}

TEST_CASE_METHOD(InformedStore, "look_again() ends a watch that lags, and waits for a list of its own") {
  server->answer(200, list_of({pod("a", 1)}, 5));
  server->answer(kSilence);
  informer.start();
  REQUIRE(server->wait_for_requests(2));
  CHECK(informer.has_synced());
  {
    std::lock_guard lock(mutex);  // what is new cannot be told yet
    server->answer(200, list_of({pod("b", 7)}, 9));
    server->answer(kSilence);
    informer.look_again();
    CHECK_FALSE(informer.has_synced());
  }
  REQUIRE(informer.wait_for_sync({}));
  CHECK(informer.store().get({"ns", "a"}) == nullptr);
  CHECK(told() == std::vector<std::string>{"add a", "delete a", "add b"});
}

TEST_CASE_METHOD(InformedStore,
                 "a new list keeps the objects that have not changed, so that it needs no memory for them twice") {
  server->answer(200, list_of({pod("same", 1), pod("changed", 2)}, 5));
  server->answer(kSilence);
  informer.start();
  REQUIRE(server->wait_for_requests(2));
  REQUIRE(informer.wait_for_sync({}));
  const ObjectPointer same = informer.store().get({"ns", "same"});
  const ObjectPointer changed = informer.store().get({"ns", "changed"});
  server->answer(200, list_of({pod("same", 1), pod("changed", 6)}, 9));
  server->answer(kSilence);
  informer.look_again();
  REQUIRE(informer.wait_for_sync({}));
  CHECK(informer.store().get({"ns", "same"}) == same);
  CHECK(informer.store().get({"ns", "changed"}) != changed);
}

TEST_CASE_METHOD(InformedStore, "an event that repeats what the list had is not told again") {
  server->answer(200, list_of({pod("a", 1)}, 5));
  server->answer(ScriptedStream{{event("ADDED", pod("a", 1)), bookmark(6)}});
  server->answer(kSilence);
  informer.start();
  REQUIRE(server->wait_for_requests(3));
  CHECK(told() == std::vector<std::string>{"add a"});
}

TEST_CASE_METHOD(InformedStore, "no object is replaced or deleted by something older, whatever the events' own order") {
  // The list holds b as of 7 although it was taken at 5: a cache may be that much ahead for one object.
  server->answer(200, list_of({pod("a", 1), pod("b", 7)}, 5));
  server->answer(
      ScriptedStream{{event("MODIFIED", pod("b", 6)), event("DELETED", pod("b", 6)), event("MODIFIED", pod("a", 4)),
                      event("MODIFIED", pod("b", 8)), event("DELETED", pod("a", 9))}});
  server->answer(kSilence);
  informer.start();
  REQUIRE(server->wait_for_requests(3));
  CHECK(told() == std::vector<std::string>{"add a", "add b", "change b", "delete a"});
  CHECK(stored_before_told);
}

TEST_CASE_METHOD(InformedStore, "handlers feed a work queue that a worker drains") {
  WorkQueue<> queue(clock);
  informer.add_handler([&](const Change& change) { queue.add(change.key, change.priority()); });
  server->answer(200, list_of({pod("a", 1), pod("b", 2)}, 5));
  server->answer(kSilence);
  informer.start();
  CHECK(queue.get({})->name == "a");
  CHECK(queue.get({})->name == "b");
}

}  // namespace
}  // namespace sluice::kube
