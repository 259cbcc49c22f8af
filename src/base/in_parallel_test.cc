#include "src/base/in_parallel.h"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

TEST_CASE("every piece of work is done once, however many threads there are") {
  const int threads = GENERATE(-1, 0, 1, 2, 8, 200);
  const int count = GENERATE(0, 1, 7, 100);
  std::vector<std::atomic<int>> times(count);
  REQUIRE(in_parallel(count, threads, [&](int i) -> Result<void> {
            ++times[i];
            return {};
          }).ok());
  for (const auto& done : times) CHECK(done == 1);
}

TEST_CASE("one thread does the work in its order, on the caller's own thread") {
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<int> order;
  REQUIRE(in_parallel(5, 1, [&](int i) -> Result<void> {
            CHECK(std::this_thread::get_id() == caller);
            order.push_back(i);
            return {};
          }).ok());
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("pieces of work wait for each other only if there are threads enough: four run at once") {
  std::latch all_there(4);
  CHECK(in_parallel(4, 4, [&](int) -> Result<void> {
          all_there.arrive_and_wait();
          return {};
        }).ok());
}

TEST_CASE("work that throws is an error, on whatever thread") {
  const auto outcome = in_parallel(4, 4, [](int) -> Result<void> { throw std::runtime_error("odd"); });
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().code() == ErrorCode::kInternal);
}

TEST_CASE("the first error ends it: nothing more is begun, and it is the one that is returned") {
  std::atomic<int> begun = 0;
  const auto outcome = in_parallel(1000, 1, [&](int i) -> Result<void> {
    ++begun;
    if (i == 3) return unavailable("the fourth");
    return {};
  });
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().message() == "the fourth");
  CHECK(begun == 4);
}

TEST_CASE("what others have begun when one fails still ends before the call returns") {
  std::latch both_begun(2);
  std::atomic<bool> other_ended = false;
  const auto outcome = in_parallel(2, 2, [&](int i) -> Result<void> {
    both_begun.arrive_and_wait();
    if (i == 0) return unavailable("no");
    other_ended = true;
    return {};
  });
  CHECK_FALSE(outcome.ok());
  CHECK(other_ended);
}

}  // namespace
}  // namespace sluice
