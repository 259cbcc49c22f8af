#include "src/executor/reading_jobs.h"

#include <future>

#include "src/base/testing/catch.h"
#include "src/executor/testing/ahead.h"

namespace sluice::executor {
namespace {

using testing::Ahead;

TEST_CASE("a job begins when what it reads has come; one that reads nothing begins at once") {
  ThreadPool pool(1, 1, 10, 0);
  ReadingJobs jobs(pool);
  std::promise<void> first, second, third;
  const auto job = [](std::promise<void>& ran) { return [&ran](ThreadState&) { ran.set_value(); }; };
  const auto ahead = std::make_shared<Ahead>(false);
  CHECK(jobs.submit(ahead, job(first), nullptr));
  CHECK(jobs.submit(nullptr, job(second), nullptr));
  CHECK(jobs.submit(std::make_shared<Ahead>(true), job(third), nullptr));
  second.get_future().wait();
  third.get_future().wait();
  auto begun = first.get_future();
  CHECK(begun.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  ahead->told();
  begun.wait();
}

TEST_CASE("a job is refused where the queue is full, at once or later, and never begins behind the end") {
  ThreadPool pool(1, 1, 0, 0);
  const auto ahead = std::make_shared<Ahead>(false);
  bool is_refused = false;
  {
    ReadingJobs jobs(pool);
    CHECK_FALSE(jobs.submit(
        nullptr, [](ThreadState&) {}, nullptr));
    CHECK(jobs.submit(
        ahead, [](ThreadState&) {}, [&] { is_refused = true; }));
    ahead->told();
    CHECK(is_refused);
    is_refused = false;
  }
  ahead->told();
  CHECK_FALSE(is_refused);
}

}  // namespace
}  // namespace sluice::executor
