// The real client and informer on the fake API server: the faults that a watch can suffer.
#include "src/kube/fake/fake_transport.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/kube/fake/watch_session.h"
#include "src/kube/watch.h"

namespace sluice::kube::fake {
namespace {

class Bench {
 public:
  Bench()
      : server_(clock_), transport_(std::make_shared<FakeTransport>(server_, &view_)), client_(transport_, clock_) {}

  Json create(const std::string& name) {
    const auto created = client_.create(kConfigMaps, "default", {{"metadata", {{"name", name}}}}, "test");
    REQUIRE(created.ok());
    return *created;
  }
  std::string version() { return std::to_string(server_.revision()); }
  std::unique_ptr<WatchSession> watch(const std::string& version) {
    http::Response refusal;
    return server_.watch({"GET", "/api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=" + version},
                         &view_, refusal);
  }

  sluice::testing::ManualClock clock_;
  ApiServer server_;
  CacheView view_;
  std::shared_ptr<FakeTransport> transport_;
  Client client_;
};

std::string type_of(const std::optional<std::string>& line) {
  return line ? Json::parse(*line)["type"].get<std::string>() : "none";
}

TEST_CASE("a compacted version is answered with an error in the stream, after which it ends") {
  Bench bench;
  bench.create("a");
  const std::string before = bench.version();
  bench.create("b");
  bench.server_.compact(bench.server_.revision());
  const auto watch = bench.watch(before);
  REQUIRE(watch);
  CHECK(Json::parse(*watch->next_line())["object"]["code"] == 410);
  CHECK(watch->state() == WatchSession::State::kEnded);
  WatchOptions options;
  options.resource_version = before;
  const auto ended = bench.client_.watch(kConfigMaps, options, [](WatchEvent&&) { return Result<void>(); }, {});
  REQUIRE_FALSE(ended.ok());
  CHECK(ended.error().code() == ErrorCode::kGone);
}

TEST_CASE("discovery tells whether pods can be resized in place") {
  Bench bench;
  CHECK(bench.client_.serves(kPods, "resize").value());
  CHECK_FALSE(bench.client_.serves(kNodes, "resize").value());
  bench.server_.set_resizes_pods(false);
  CHECK_FALSE(bench.client_.serves(kPods, "resize").value());
  CHECK(bench.client_.serves(kPods, "status").value());
}

TEST_CASE("an unfinished list expires with its version") {
  Bench bench;
  for (const char* name : {"a", "b", "c"}) bench.create(name);
  ListOptions options;
  options.page_size = 2;
  const auto first = bench.client_.list_page(kConfigMaps, options);
  REQUIRE(first.ok());
  options.continuation = first->continuation;
  bench.server_.compact(bench.server_.revision());
  const auto second = bench.client_.list_page(kConfigMaps, options);
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().code() == ErrorCode::kGone);
}

TEST_CASE("bookmarks carry the version, and never overtake an event") {
  Bench bench;
  const auto watch = bench.watch(bench.version());
  REQUIRE(bench.server_.create(kNodes, {{"metadata", {{"name", "other-kind"}}}}).ok());
  bench.server_.send_bookmarks();
  const auto bookmark = watch->next_line();
  CHECK(type_of(bookmark) == "BOOKMARK");
  CHECK(Json::parse(*bookmark)["object"]["metadata"]["resourceVersion"] == bench.version());
  bench.create("a");
  bench.server_.send_bookmarks();
  CHECK(type_of(watch->next_line()) == "ADDED");
  CHECK(type_of(watch->next_line()) == "none");
}

TEST_CASE("a watch that breaks off loses what was not read") {
  Bench bench;
  const auto watch = bench.watch(bench.version());
  bench.create("a");
  watch->break_off();
  CHECK_FALSE(watch->next_line());
  CHECK(watch->state() == WatchSession::State::kBroken);
}

TEST_CASE("a frozen view shows the past in watches and cached lists, never in reads") {
  Bench bench;
  bench.create("a");
  bench.view_.frozen_at = bench.server_.revision();
  const auto watch = bench.watch(bench.version());
  bench.create("b");
  CHECK_FALSE(watch->has_line());
  CHECK(bench.client_.list(kConfigMaps, {.resource_version = "0"})->items.size() == 1);
  CHECK(bench.client_.list(kConfigMaps, {})->items.size() == 2);
  CHECK(bench.client_.get(kConfigMaps, {"default", "b"}).ok());
  const auto too_new = bench.client_.list(kConfigMaps, {.resource_version = bench.version()});
  REQUIRE_FALSE(too_new.ok());
  CHECK(too_new.error().code() == ErrorCode::kGone);
  bench.view_.frozen_at.reset();
  CHECK(type_of(watch->next_line()) == "ADDED");
}

TEST_CASE("a blocked watch ends when it is stopped, and wakes for a change") {
  Bench bench;
  WatchOptions options;
  options.resource_version = bench.version();
  std::stop_source stop;
  std::vector<std::string> seen;
  Result<void> ended;
  std::thread watcher([&] {
    ended = bench.client_.watch(
        kConfigMaps, options,
        [&](WatchEvent&& event) {
          seen.push_back(event.object["metadata"]["name"]);
          if (seen.size() == 2) stop.request_stop();
          return Result<void>();
        },
        stop.get_token());
  });
  bench.create("a");
  bench.create("b");
  watcher.join();
  CHECK(seen == std::vector<std::string>{"a", "b"});
}

}  // namespace
}  // namespace sluice::kube::fake
