#include "src/kube/work_queue.h"

#include <atomic>
#include <string>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;
using sluice::testing::ManualClock;
using Queue = WorkQueue<std::string>;

TEST_CASE("keys come out once, in the order they went in") {
  ManualClock clock;
  Queue queue(clock);
  for (const char* key : {"a", "b", "a", "c", "b"}) queue.add(key);
  CHECK(queue.size() == 3);
  CHECK(*queue.try_get() == "a");
  CHECK(*queue.try_get() == "b");
  CHECK(*queue.try_get() == "c");
  CHECK_FALSE(queue.try_get());
}

TEST_CASE("a key added while in work comes back when the work is done, once") {
  ManualClock clock;
  Queue queue(clock);
  queue.add("a");
  CHECK(*queue.try_get() == "a");
  queue.add("a");
  queue.add("a");
  CHECK_FALSE(queue.try_get());
  queue.done("a");
  CHECK(*queue.try_get() == "a");
  queue.done("a");
  CHECK_FALSE(queue.try_get());
}

TEST_CASE("a delayed key comes when its time has come, and of two delays the nearer counts") {
  ManualClock clock;
  Queue queue(clock);
  queue.add_after("later", 10s);
  queue.add_after("soon", 5s);
  queue.add_after("later", 3s);
  queue.add_after("soon", 60s);
  clock.advance(2999ms);
  CHECK_FALSE(queue.try_get());
  clock.advance(1ms);
  CHECK(*queue.get({}) == "later");
  clock.advance(2s);
  CHECK(*queue.get({}) == "soon");
  clock.advance(1h);
  queue.add("last");
  CHECK(*queue.get({}) == "last");
  CHECK_FALSE(queue.try_get());
}

TEST_CASE("no delay is no delay") {
  ManualClock clock;
  Queue queue(clock);
  queue.add_after("a", 0ms);
  CHECK(*queue.try_get() == "a");
}

TEST_CASE("failures double the pause up to the cap; forgetting starts over") {
  ManualClock clock;
  Queue queue(clock, {5ms, 30ms});
  for (const auto pause : {5ms, 10ms, 20ms, 30ms, 30ms}) {
    INFO(pause.count());
    queue.add_rate_limited("a");
    clock.advance(pause - 1ms);
    CHECK_FALSE(queue.try_get());
    clock.advance(1ms);
    CHECK(*queue.get({}) == "a");
    queue.done("a");
  }
  queue.forget("a");
  queue.add_rate_limited("a");
  clock.advance(5ms);
  CHECK(*queue.get({}) == "a");
}

TEST_CASE("without threads, the next delayed key says when to come back") {
  ManualClock clock;
  Queue queue(clock);
  CHECK_FALSE(queue.next_due());
  queue.add_after("b", 20s);
  queue.add_after("a", 10s);
  CHECK(queue.next_due() == clock.now() + 10s);
  CHECK_FALSE(queue.try_get());
  clock.advance(10s);
  CHECK(*queue.try_get() == "a");
  CHECK(queue.next_due() == clock.now() + 10s);
}

TEST_CASE("what is fresh comes before what can wait, and what can wait is not forgotten") {
  ManualClock clock;
  Queue queue(clock, {.low_share = 3});
  for (const char* key : {"old1", "old2", "old3"}) queue.add(key, Priority::kLow);
  for (const char* key : {"new1", "new2", "new3", "new4"}) queue.add(key);
  std::string order;
  while (const auto key = queue.try_get()) order += *key + " ";
  CHECK(order == "new1 new2 old1 new3 new4 old2 old3 ");
}

TEST_CASE("a key moves up when it becomes fresh, never down, and still comes once") {
  ManualClock clock;
  Queue queue(clock);
  for (const char* key : {"a", "b", "c"}) queue.add(key, Priority::kLow);
  queue.add("c");
  queue.add("c", Priority::kLow);
  CHECK(queue.size() == 3);
  CHECK(*queue.try_get() == "c");
  queue.add("c", Priority::kLow);  // while in work
  queue.add("c");
  queue.done("c");
  CHECK(*queue.try_get() == "c");
  queue.done("c");
  CHECK(*queue.try_get() == "a");
  CHECK(*queue.try_get() == "b");
  CHECK_FALSE(queue.try_get());
}

TEST_CASE("a delayed key keeps the highest priority that it was given, whichever delay is the nearest") {
  ManualClock clock;
  Queue queue(clock);
  queue.add_after("report", 1s, Priority::kLow);
  queue.add_after("urgent", 5s, Priority::kNormal);
  queue.add_after("urgent", 1s, Priority::kLow);
  clock.advance(1s);
  CHECK(queue.try_get() == "urgent");
  CHECK(queue.try_get() == "report");
  CHECK_FALSE(queue.try_get());
}

TEST_CASE("get ends when asked to stop") {
  ManualClock clock;
  Queue queue(clock);
  std::stop_source stop;
  std::optional<std::string> got = "unset";
  std::thread worker([&] { got = queue.get(stop.get_token()); });
  stop.request_stop();
  worker.join();
  CHECK_FALSE(got);
  queue.add("a");
  CHECK_FALSE(queue.get(stop.get_token()));
}

TEST_CASE("no key is ever with two workers, and no add is lost") {
  ManualClock clock;
  WorkQueue<int> queue(clock);
  constexpr int kKeys = 5;
  constexpr int kAdds = 2000;
  std::atomic<int> busy[kKeys] = {};
  std::atomic<int> seen[kKeys] = {};  // the newest generation the last work on the key saw
  std::atomic<int> generation[kKeys] = {};
  std::atomic<bool> overlap = false;
  std::stop_source stop;
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; ++w) {
    workers.emplace_back([&] {
      while (const auto key = queue.get(stop.get_token())) {
        if (busy[*key].fetch_add(1) != 0) overlap = true;
        seen[*key] = generation[*key].load();
        busy[*key].fetch_sub(1);
        queue.done(*key);
      }
    });
  }
  for (int i = 0; i < kAdds; ++i) {
    ++generation[i % kKeys];
    queue.add(i % kKeys);
  }
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  const auto all_seen = [&] {
    for (int k = 0; k < kKeys; ++k) {
      if (seen[k] != generation[k]) return false;
    }
    return true;
  };
  while (!all_seen() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  CHECK(all_seen());
  stop.request_stop();
  for (auto& worker : workers) worker.join();
  CHECK_FALSE(overlap);
}

}  // namespace
}  // namespace sluice::kube
