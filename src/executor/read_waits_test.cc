#include "src/executor/read_waits.h"

#include "src/base/testing/catch.h"
#include "src/executor/testing/ahead.h"

namespace sluice::executor {
namespace {

using testing::Ahead;

struct Fixture {
  std::shared_ptr<Ahead> begin() {
    const auto ahead = std::make_shared<Ahead>();
    CHECK(waits->counted(ahead)->when_come([this] { ++come; }));
    return ahead;
  }

  std::chrono::steady_clock::time_point now{};
  std::size_t threads = 2;
  double blocked_seconds = 0;
  int come = 0;
  std::unique_ptr<ReadWaits> waits = std::make_unique<ReadWaits>(
      [this] { return threads; }, [this](double seconds) { blocked_seconds += seconds; }, [this] { return now; });
};

TEST_CASE("waits for reads count a thread each, as far as there are threads") {
  Fixture fixture;
  const auto pass = [&](int seconds) { fixture.now += std::chrono::seconds(seconds); };
  pass(10);
  const auto first = fixture.begin();
  pass(1);  // 1
  const auto second = fixture.begin();
  pass(1);  // 2
  const auto third = fixture.begin();
  pass(1);  // 2: there are no more threads
  third->told();
  second->told();
  pass(1);  // 1
  first->told();
  pass(10);
  CHECK(fixture.blocked_seconds == 6);
  CHECK(fixture.come == 3);
}

TEST_CASE("what is there already was not waited for, and nothing is nothing") {
  Fixture fixture;
  CHECK_FALSE(fixture.waits->counted(std::make_shared<Ahead>(true))->when_come([] {}));
  fixture.now += std::chrono::seconds(1);
  fixture.begin()->told();
  CHECK(fixture.blocked_seconds == 0);
  CHECK(fixture.waits->counted(nullptr) == nullptr);
}

TEST_CASE("what comes behind the end is passed on, and not counted") {
  Fixture fixture;
  const auto ahead = fixture.begin();
  fixture.now += std::chrono::seconds(1);
  fixture.waits.reset();
  ahead->told();
  CHECK(fixture.blocked_seconds == 0);
  CHECK(fixture.come == 1);
}

}  // namespace
}  // namespace sluice::executor
