#include "src/executor/wait_share.h"

#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::executor {
namespace {

TEST_CASE("a batch counts for the share of its time in which it computes") {
  struct Batch {
    double busy_seconds = 0;
    double blocked_seconds = 0;
    int times = 1;
  };
  struct Case {
    const char* story;
    std::vector<Batch> batches;
    double load;
  };
  const Case cases[] = {
      {"nothing is known", {}, 1},
      {"it computes", {{0.5, 0, 30}}, 1},
      {"it computes, and what it reads is in memory but for moments", {{0.5, 0.01, 30}}, 1},
      {"it sleeps", {{0, 1, 30}}, WaitShare::kLoadMin},
      {"it reads for as long as it computes", {{0.2, 0.2, 30}}, 0.25},
      {"it reads for a third of the time", {{0.2, 0.1, 30}}, 0.4},
      {"so little was seen that an import explains it", {{0, 0.1}}, 1},
      {"a long first batch is enough", {{0, 0.3}}, WaitShare::kLoadMin},
      {"it slept for long, and computes now", {{0, 1, 30}, {0.5, 0, 60}}, 1},
      {"it computed for long, and reads now", {{0.5, 0, 30}, {0.2, 0.2, 60}}, 0.25},
      {"one batch in thirty slept", {{0.5, 0, 30}, {0.5, 0.5}, {0.5, 0, 29}}, 1},
  };
  for (const Case& each : cases) {
    INFO(each.story);
    WaitShare share;
    for (const Batch& batch : each.batches) {
      for (int i = 0; i < batch.times; ++i) share.observe(batch.busy_seconds, batch.blocked_seconds);
    }
    CHECK(share.load() == Approx(each.load).epsilon(WaitShare::kToldChange / (1 - WaitShare::kToldChange) + 0.01));
  }
}

TEST_CASE("as many jobs run as fill the threads, at most as many as the loader has workers") {
  WaitShare share;
  CHECK(share.jobs_on(2) == 2);
  share.observe(1, 1);
  CHECK(share.jobs_on(2) == 8);
  share.set_jobs_max(5);
  CHECK(share.jobs_on(2) == 5);
  CHECK(share.jobs_on(6) == 6);
}

TEST_CASE("rough figures ask for exact ones where they might say that it waits, and change nothing by themselves") {
  WaitShare share;
  CHECK(!share.observe_rough(1, 0.01));
  CHECK(!share.wants_exact());
  CHECK(!share.observe_rough(1, 10));
  CHECK(share.wants_exact());
  SECTION("it was the CPU") {
    CHECK(!share.observe(1, 0));
    CHECK(!share.wants_exact());
    CHECK(share.load() == 1);
  }
  SECTION("it waits") {
    CHECK(share.observe(1, 10));
    CHECK(share.wants_exact());
    CHECK(share.load() < 1);
  }
}

TEST_CASE("what stays nearly the same is told once") {
  WaitShare share;
  int told = 0;
  for (int i = 0; i < 200; ++i) told += share.observe(0.1, i % 2 == 0 ? 0.2 : 0.22);
  CHECK(told <= 3);
  for (int i = 0; i < 200; ++i) told += share.observe(0.1, 0.1);
  CHECK(told <= 12);
}

TEST_CASE("a share about the threshold does not turn to and fro") {
  WaitShare share;
  for (int i = 0; i < 30; ++i) share.observe(0.9, 0.1);
  CHECK(share.load() < 1);
  int turns = 0;
  for (int i = 0; i < 200; ++i) {
    const bool waited = share.load() < 1;
    share.observe(1, i % 2 == 0 ? 0.03 : 0.05);
    turns += waited != (share.load() < 1);
  }
  CHECK(turns == 0);
}

}  // namespace
}  // namespace sluice::executor
