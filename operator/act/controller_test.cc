#include "operator/act/controller.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::act {
namespace {

TEST_CASE("a lost race is no failure, and is not run again before there is something new") {
  sluice::testing::ManualClock clock;
  int tries = 0;
  int failures = 0;
  Controller controller(
      "test",
      [&](const kube::ObjectKey&, std::stop_token) -> Again {
        if (++tries <= 3) return Error(ErrorCode::kConflict, "modified");
        return std::optional<std::chrono::milliseconds>();
      },
      [&] { ++failures; }, clock);
  const auto work = [&] {
    while (controller.step()) continue;
    return tries;
  };
  controller.enqueue({"default", "vision"});
  CHECK(work() == 1);
  clock.advance(std::chrono::milliseconds(500));
  CHECK(work() == 1);
  controller.enqueue({"default", "vision"});  // the change that was missed
  CHECK(work() == 2);
  for (int i = 0; i < 10; ++i) {
    clock.advance(std::chrono::seconds(1));
    work();
  }
  CHECK(tries == 4);
  CHECK(failures == 0);
}

TEST_CASE("a reconcile that hangs is known by how long it runs") {
  sluice::testing::ManualClock clock;
  std::atomic<bool> runs = false, released = false;
  Controller controller(
      "test",
      [&](const kube::ObjectKey&, std::stop_token) -> Again {
        runs = true;
        runs.notify_all();
        released.wait(false);
        return std::optional<std::chrono::milliseconds>();
      },
      [] {}, clock);
  clock.advance(std::chrono::minutes(20));
  CHECK(controller.longest_running() == Clock::Duration::zero());
  controller.enqueue({"default", "vision"});
  std::jthread thread([&] { controller.step(); });
  runs.wait(false);
  clock.advance(std::chrono::minutes(20));
  CHECK(controller.longest_running() == std::chrono::minutes(20));
  released = true;
  released.notify_all();
  thread.join();
  CHECK(controller.longest_running() == Clock::Duration::zero());
}

TEST_CASE("a key whose reconcile throws is tried again like one that fails, and the others go on") {
  sluice::testing::ManualClock clock;
  std::vector<std::string> done;
  int failures = 0;
  Controller controller(
      "test",
      [&](const kube::ObjectKey& key, std::stop_token) -> Again {
        if (key.name == "odd" && failures < 2) throw std::runtime_error("type must be array");
        done.push_back(key.name);
        return std::optional<std::chrono::milliseconds>();
      },
      [&] { ++failures; }, clock);
  controller.enqueue({"default", "odd"});
  controller.enqueue({"default", "vision"});
  for (int i = 0; i < 10; ++i) {
    while (controller.step()) continue;
    clock.advance(std::chrono::minutes(1));
  }
  CHECK(done == std::vector<std::string>{"vision", "odd"});
  CHECK(failures == 2);
}

TEST_CASE("a controller works off its keys, retries failures and comes back when asked to") {
  sluice::testing::ManualClock clock;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> seen;
  int failures = 0;
  Controller controller(
      "test",
      [&](const kube::ObjectKey& key, std::stop_token) -> Again {
        std::lock_guard lock(mutex);
        seen.push_back(key.name);
        changed.notify_all();
        if (key.name == "fails" && seen.size() < 3) return unavailable("away");
        if (key.name == "returns" && seen.size() < 5) return std::optional(std::chrono::milliseconds(1000));
        return std::optional<std::chrono::milliseconds>();
      },
      [&] { ++failures; }, clock);
  const auto wait_for = [&](std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::unique_lock lock(mutex);
    while (seen.size() < count && std::chrono::steady_clock::now() < deadline) {
      changed.wait_for(lock, std::chrono::milliseconds(10));
      lock.unlock();
      clock.advance(std::chrono::seconds(1));
      lock.lock();
    }
    return seen.size() >= count;
  };
  controller.start(2);
  controller.enqueue({"default", "fails"});
  REQUIRE(wait_for(3));
  controller.enqueue({"default", "returns"});
  REQUIRE(wait_for(5));
  controller.stop();
  CHECK(failures == 2);
}

TEST_CASE("many reports about one object are one, after what is to be done") {
  using std::chrono_literals::operator""ms;
  sluice::testing::ManualClock clock;
  std::vector<std::string> seen;
  Controller controller(
      "test",
      [&](const kube::ObjectKey& key, std::stop_token) -> Again {
        seen.push_back(key.name);
        return std::optional<std::chrono::milliseconds>();
      },
      [] {}, clock);
  for (int pod = 0; pod < 10; ++pod) {
    controller.enqueue_report({"default", "started"}, 500ms);
    clock.advance(20ms);
  }
  CHECK_FALSE(controller.step());
  clock.advance(300ms);
  controller.enqueue({"default", "scaled"});
  while (controller.step()) {
  }
  CHECK(seen == std::vector<std::string>{"scaled", "started"});
}

}  // namespace
}  // namespace sluice::act
