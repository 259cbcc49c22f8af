#include "src/executor/thread_pool.h"

#include <sys/resource.h>

#include <atomic>
#include <future>
#include <set>

#include "src/base/testing/catch.h"

namespace sluice::executor {
namespace {

TEST_CASE("jobs run on as many threads as the pool has") {
  ThreadPool pool(3, 3, 100, 0);
  std::promise<void> all_here;
  std::atomic<int> here = 0;
  auto together = all_here.get_future().share();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(pool.submit([&, together](ThreadState&) {
      if (++here == 3) all_here.set_value();
      together.wait();
    }));
  }
  CHECK(together.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
}

TEST_CASE("the queue is bounded") {
  ThreadPool pool(1, 1, 2, 0);
  std::promise<void> started, release;
  auto released = release.get_future().share();
  REQUIRE(pool.submit([&, released](ThreadState&) {
    started.set_value();
    released.wait();
  }));
  started.get_future().wait();
  CHECK(pool.submit([](ThreadState&) {}));
  CHECK(pool.submit([](ThreadState&) {}));
  CHECK(!pool.submit([](ThreadState&) {}));
  CHECK(pool.queued() == 2);
  release.set_value();
}

TEST_CASE("threads that a job invites come before the jobs that wait") {
  ThreadPool pool(1, 1, 10, 0);
  std::vector<std::string> order;
  std::promise<void> submitted, done;
  auto all_submitted = submitted.get_future().share();
  REQUIRE(pool.submit([&, all_submitted](ThreadState&) {
    all_submitted.wait();
    pool.invite(2, [&](ThreadState&) { order.emplace_back("helps"); });
    order.emplace_back("invites");
  }));
  REQUIRE(pool.submit([&](ThreadState&) {
    order.emplace_back("waits");
    done.set_value();
  }));
  submitted.set_value();
  done.get_future().wait();
  CHECK(order == std::vector<std::string>{"invites", "helps", "helps", "waits"});
}

TEST_CASE("fewer threads after a smaller quota, more after a larger one") {
  ThreadPool pool(1, 4, 100, 0);
  CHECK(pool.threads() == 1);
  const auto most_at_once = [&](std::size_t threads) {
    pool.set_threads(threads);
    std::atomic<int> running = 0, most = 0;
    std::vector<std::future<void>> done;
    for (int i = 0; i < 40; ++i) {
      auto promise = std::make_shared<std::promise<void>>();
      done.push_back(promise->get_future());
      REQUIRE(pool.submit([&, promise](ThreadState&) {
        const int now = ++running;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --running;
        promise->set_value();
      }));
    }
    for (auto& one : done) one.wait();
    return most.load();
  };
  CHECK(most_at_once(1) == 1);
  CHECK(most_at_once(4) <= 4);
  CHECK(most_at_once(1) == 1);
  pool.set_threads(99);
  CHECK(pool.threads() == 4);
}

TEST_CASE("a job that waits leaves its place to another one, and takes no second one afterwards") {
  ThreadPool pool(1, 1, 100, 0);
  std::promise<void> other_ran, over;
  REQUIRE(pool.submit([&](ThreadState&) {
    pool.begin_wait();
    other_ran.get_future().wait();
    pool.end_wait();
    over.set_value();
  }));
  REQUIRE(pool.submit([&](ThreadState&) { other_ran.set_value(); }));
  REQUIRE(over.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(pool.waiting() == 0);
  std::atomic<int> working = 0, beside_another = 0, done = 0;
  for (int i = 0; i < 40; ++i) {
    REQUIRE(pool.submit([&](ThreadState&) {
      if (++working > 1) ++beside_another;
      std::this_thread::yield();
      --working;
      ++done;
    }));
  }
  while (done < 40) std::this_thread::yield();
  CHECK(beside_another == 0);
}

TEST_CASE("jobs that wait have threads up to a bound") {
  ThreadPool pool(1, 1, 100, 0);
  constexpr std::size_t kJobs = ThreadPool::waiting_max(1) + 3;
  std::promise<void> release;
  auto released = release.get_future().share();
  std::atomic<std::size_t> begun = 0, ended = 0;
  for (std::size_t i = 0; i < kJobs; ++i) {
    REQUIRE(pool.submit([&, released](ThreadState&) {
      pool.begin_wait();
      ++begun;
      released.wait();
      pool.end_wait();
      ++ended;
    }));
  }
  while (begun < ThreadPool::waiting_max(1) + 1) std::this_thread::yield();
  CHECK(pool.waiting() == ThreadPool::waiting_max(1));
  CHECK(pool.queued() == 2);
  release.set_value();
  while (ended < kJobs) std::this_thread::yield();
}

// So many jobs of a pipeline run at once on a pool of two threads; none ends before all of them have been there.
std::size_t jobs_at_once(const std::shared_ptr<WaitShare>& waits, std::size_t jobs_max, std::size_t expected) {
  ThreadPool pool(2, 2, 100, 0);
  pool.set_jobs_max(jobs_max);
  std::promise<void> release;
  auto released = release.get_future().share();
  std::atomic<std::size_t> begun = 0;
  constexpr std::size_t kJobs = 20;
  for (std::size_t i = 0; i < kJobs; ++i) {
    const auto job = [&, released](ThreadState&) {
      ++begun;
      released.wait();
    };
    REQUIRE(pool.submit(job, waits));
  }
  while (begun < expected || begun + pool.queued() < kJobs) std::this_thread::yield();
  const std::size_t at_once = begun;
  release.set_value();
  while (begun < kJobs) std::this_thread::yield();
  return at_once;
}

TEST_CASE("many jobs of a pipeline that waits run at once, up to a bound; of one that computes as many as threads") {
  const auto computes = std::make_shared<WaitShare>(), waits = std::make_shared<WaitShare>(),
             half = std::make_shared<WaitShare>();
  waits->observe(0, 10);
  half->observe(10, 10);
  CHECK(jobs_at_once(nullptr, 100, 2) == 2);
  CHECK(jobs_at_once(computes, 100, 2) == 2);
  CHECK(jobs_at_once(half, 100, 8) == 8);
  CHECK(jobs_at_once(waits, 100, 20) == 20);
  CHECK(jobs_at_once(waits, 5, 5) == 5);
  CHECK(jobs_at_once(waits, 0, 2) == 2);
}

TEST_CASE("jobs that run already count less when their pipeline turns out to wait") {
  ThreadPool pool(1, 1, 10, 0);
  const auto waits = std::make_shared<WaitShare>();
  std::promise<void> other_ran;
  std::promise<bool> over;
  REQUIRE(pool.submit(
      [&](ThreadState&) {
        const bool has_changed = waits->observe(0, 10);
        pool.follow_loads();
        other_ran.get_future().wait();
        over.set_value(has_changed);
      },
      waits));
  REQUIRE(pool.submit([&](ThreadState&) { other_ran.set_value(); }));
  std::future<bool> has_changed = over.get_future();
  REQUIRE(has_changed.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(has_changed.get());
}

TEST_CASE("a pool that ends asks the jobs that wait, too") {
  std::atomic<bool> waited = false;
  {
    ThreadPool pool(1, 1, 10, 0);
    std::promise<void> started;
    REQUIRE(pool.submit([&](ThreadState& thread) {
      started.set_value();
      while (!thread.stop.stop_requested()) std::this_thread::yield();
      pool.begin_wait();
      pool.end_wait();
      waited = true;
    }));
    started.get_future().wait();
  }
  CHECK(waited);
}

TEST_CASE("a nice pool yields to the process's other threads") {
  const int ours = ::getpriority(PRIO_PROCESS, 0);
  ThreadPool pool(1, 1, 1, 10);
  std::promise<int> priority;
  REQUIRE(pool.submit([&](ThreadState&) { priority.set_value(::getpriority(PRIO_PROCESS, 0)); }));
  CHECK(priority.get_future().get() >= 10);
  CHECK(::getpriority(PRIO_PROCESS, 0) == ours);
}

TEST_CASE("ending asks the running job to stop and drops the waiting ones") {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool(1, 1, 10, 0);
    std::promise<void> started;
    REQUIRE(pool.submit([&](ThreadState& thread) {
      started.set_value();
      while (!thread.stop.stop_requested()) std::this_thread::yield();
      ++ran;
    }));
    REQUIRE(pool.submit([&](ThreadState&) { ran += 100; }));
    started.get_future().wait();
  }
  CHECK(ran == 1);
}

}  // namespace
}  // namespace sluice::executor
