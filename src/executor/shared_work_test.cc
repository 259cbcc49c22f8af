#include "src/executor/shared_work.h"

#include <future>
#include <latch>
#include <set>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::executor {
namespace {

constexpr std::chrono::seconds kPatience{60};

// Runs `options` as a job of the pool; `finished` sets the result.
std::future<SharedWork::Done> start(ThreadPool& pool, SharedWork::Options options) {
  auto promise = std::make_shared<std::promise<SharedWork::Done>>();
  options.finished = [promise](SharedWork::Done done) { promise->set_value(std::move(done)); };
  REQUIRE(pool.submit([&pool, options](ThreadState& thread) { SharedWork::run(options, pool, thread); }));
  return promise->get_future();
}

SharedWork::Done finished(std::future<SharedWork::Done> future) {
  REQUIRE(future.wait_for(kPatience) == std::future_status::ready);
  return future.get();
}

TEST_CASE("each item is made once, by any number of threads") {
  for (const std::size_t threads : {1u, 2u, 7u}) {
    for (const std::size_t items : {0u, 1u, 4u, 5u, 257u}) {
      INFO(threads << " threads, " << items << " items");
      ThreadPool pool(threads, threads, 100, 0);
      std::vector<std::atomic<int>> made(items);
      const auto make = [&](std::size_t item, ThreadState&) -> Result<void> {
        ++made[item];
        return {};
      };
      CHECK(finished(start(pool, {items, make, {}})).result.ok());
      for (const auto& times : made) CHECK(times == 1);
    }
  }
}

TEST_CASE("free threads take part, one for four items") {
  ThreadPool pool(8, 8, 100, 0);
  std::latch all_here(3);
  const auto make = [&](std::size_t item, ThreadState&) -> Result<void> {
    if (item < 3) all_here.arrive_and_wait();  // comes back only if three threads are at it at once
    return {};
  };
  CHECK(finished(start(pool, {12, make, {}})).result.ok());
}

TEST_CASE("a short batch stays on its thread") {
  ThreadPool pool(4, 4, 100, 0);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto make = [&](std::size_t, ThreadState&) -> Result<void> {
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    return {};
  };
  CHECK(finished(start(pool, {SharedWork::kItemsPerThread, make, {}})).result.ok());
  CHECK(threads.size() == 1);
}

TEST_CASE("a slow sample holds up neither the rest of its batch nor the next batch") {
  ThreadPool pool(2, 2, 100, 0);
  std::promise<void> release;
  auto released = release.get_future().share();
  std::latch others_made(15);
  auto slow = start(pool, {16,
                           [&, released](std::size_t item, ThreadState&) -> Result<void> {
                             if (item == 0) {
                               released.wait();
                             } else {
                               others_made.count_down();
                             }
                             return {};
                           },
                           {}});
  others_made.wait();
  const auto make = [](std::size_t, ThreadState&) -> Result<void> { return {}; };
  CHECK(finished(start(pool, {16, make, {}})).result.ok());
  CHECK(slow.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  release.set_value();
  CHECK(finished(std::move(slow)).result.ok());
}

TEST_CASE("the error is that of the first item that fails, whichever is met first") {
  ThreadPool pool(4, 4, 100, 0);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> made_before = 0;
    std::latch both_fail(2);
    const auto make = [&](std::size_t item, ThreadState&) -> Result<void> {
      if (item < 3) ++made_before;
      if (item != 3 && item != 4) return {};
      both_fail.arrive_and_wait();
      return Error(ErrorCode::kDataLoss, "item " + std::to_string(item));
    };
    const SharedWork::Done done = finished(start(pool, {64, make, {}}));
    REQUIRE(!done.result.ok());
    CHECK(done.result.error().message() == "item 3");
    CHECK(made_before == 3);
  }
}

TEST_CASE("the costs of all threads are those of their batch alone") {
  ThreadPool pool(3, 3, 100, 0);
  const auto make = [](std::size_t, ThreadState& thread) -> Result<void> {
    thread.scratch.costs.read.add({0.5, 10});
    return {};
  };
  for (int round = 0; round < 20; ++round) {
    const SharedWork::Done done = finished(start(pool, {40, make, {}}));
    CHECK(done.costs.read.bytes == 400);
    CHECK(done.costs.read.seconds == 20);
    CHECK(done.busy_seconds > 0);
  }
}

TEST_CASE("a pool that ends while a batch is made finishes that batch") {
  std::atomic<int> finished = 0;
  {
    ThreadPool pool(2, 2, 10, 0);
    std::promise<void> begun;
    const auto make = [&](std::size_t item, ThreadState& thread) -> Result<void> {
      if (item == 0) begun.set_value();
      if (thread.stop.stop_requested()) return no_longer_wanted();
      std::this_thread::yield();
      return {};
    };
    const auto done = [&](SharedWork::Done) { ++finished; };
    REQUIRE(pool.submit([&](ThreadState& thread) { SharedWork::run({100'000'000, make, done}, pool, thread); }));
    begun.get_future().wait();
  }
  CHECK(finished == 1);
}

}  // namespace
}  // namespace sluice::executor
