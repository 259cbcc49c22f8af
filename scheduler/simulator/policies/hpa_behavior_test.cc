#include "scheduler/simulator/policies/hpa_behavior.h"

#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

// What an HPA with these bounds sets when it would like `desired` at each sync of 15 s.
std::vector<int> follow(int start, const std::vector<int>& desired, int min = 1, int max = 1000) {
  HpaBehavior behavior;
  std::vector<int> set;
  int current = start;
  double now = 1000;
  for (const int request : desired) {
    current = behavior.next(now, current, request, min, max);
    set.push_back(current);
    now += 15;
  }
  return set;
}

TEST_CASE("speed of growth, by situation") {
  struct Row {
    const char* situation;
    int start;
    std::vector<int> desired;
    std::vector<int> want;
  };
  const Row rows[] = {
      {"from one: four more, then doubling", 1, {100, 100, 100, 100, 100, 100}, {5, 10, 20, 40, 80, 100}},
      {"small steps are not limited", 10, {12, 15, 19}, {12, 15, 19}},
      {"twenty: doubling is more than four", 20, {100, 100, 100}, {40, 80, 100}},
      {"two: four pods are more than doubling", 2, {100}, {6}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(follow(row.start, row.desired) == row.want);
  }
}

TEST_CASE("two syncs within one period share its limit") {
  HpaBehavior behavior;
  CHECK(behavior.next(1000, 4, 100, 1, 1000) == 8);
  CHECK(behavior.next(1005, 8, 100, 1, 1000) == 8);
  CHECK(behavior.next(1015, 8, 100, 1, 1000) == 16);
}

TEST_CASE("scaling down waits until nothing higher was recommended for 300 s") {
  std::vector<int> desired{20};
  desired.insert(desired.end(), 30, 5);
  const std::vector<int> set = follow(20, desired);
  // 20 was recommended at 0 s; it stops counting at 300 s, the 20th sync after it.
  for (int sync = 0; sync < 20; ++sync) CHECK(set[sync] == 20);
  for (int sync = 20; sync <= 30; ++sync) CHECK(set[sync] == 5);
}

TEST_CASE("one spike keeps the replicas for another five minutes") {
  std::vector<int> desired(10, 5);
  desired.push_back(20);
  desired.insert(desired.end(), 25, 5);
  const std::vector<int> set = follow(20, desired);
  for (int sync = 0; sync < 30; ++sync) CHECK(set[sync] == 20);
  CHECK(set.back() == 5);
}

TEST_CASE("scaling down goes no lower than the highest recommendation in the window") {
  std::vector<int> desired{20};
  desired.insert(desired.end(), 10, 12);
  desired.insert(desired.end(), 10, 5);
  const std::vector<int> set = follow(20, desired);
  CHECK(set.back() == 12);
}

TEST_CASE("a controller that has just started does not shrink at once") {
  CHECK(follow(20, {5, 5}) == std::vector<int>{20, 20});
}

TEST_CASE("bounds, by situation") {
  struct Row {
    const char* situation;
    int current, desired, min, max, want;
  };
  const Row rows[] = {
      {"over the maximum: down to it at once", 20, 20, 1, 8, 8},
      {"under the minimum: up to it at once", 1, 1, 9, 20, 9},
      {"the maximum caps growth", 6, 100, 1, 8, 8},
      {"zero replicas: switched off", 0, 10, 1, 100, 0},
      {"zero replicas and a minimum of zero (KEDA)", 0, 3, 0, 100, 3},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    HpaBehavior behavior;
    CHECK(behavior.next(1000, row.current, row.desired, row.min, row.max) == row.want);
  }
}

TEST_CASE("memory is bounded by the windows") {
  HpaBehavior behavior;
  int current = 1;
  for (int sync = 0; sync < 100'000; ++sync) current = behavior.next(sync * 15.0, current, 1 + sync % 7, 1, 100);
  CHECK(current == 7);
  CHECK(sizeof(behavior) < 1024);
}

TEST_CASE("other limits of growth, by situation: the larger of the two counts, rounded up") {
  struct Row {
    const char* situation;
    HpaBehaviorConstants limits;
    int start;
    std::vector<int> want;  // at syncs 15 s apart, of a hundred that are asked for
  };
  const Row rows[] = {
      {"half as many again, or one", {.scale_up_percent = 50, .scale_up_pods = 1}, 5, {8, 12, 18, 27}},
      {"ten pods", {.scale_up_percent = 0, .scale_up_pods = 10}, 5, {15, 25, 35, 45}},
      {"ten pods a minute",
       {.scale_up_percent = 0, .scale_up_pods = 10, .scale_up_period_seconds = 60},
       5,
       {15, 15, 15, 15, 25}},
      {"no growth at all", {.scale_up_percent = 0, .scale_up_pods = 0}, 5, {5, 5}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    HpaBehavior behavior(row.limits);
    int current = row.start;
    for (std::size_t sync = 0; sync < row.want.size(); ++sync) {
      current = behavior.next(1000 + 15.0 * static_cast<double>(sync), current, 100, 1, 1000);
      CHECK(current == row.want[sync]);
    }
  }
}

TEST_CASE("within a period: what was taken away may come back, and what a bound has added counts") {
  HpaBehavior capped;
  REQUIRE(capped.next(1000, 20, 20, 1, 8) == 8);    // the maximum was lowered
  CHECK(capped.next(1005, 8, 100, 1, 1000) == 40);  // and raised again: twice the twenty that the period began with
  HpaBehavior raised;
  REQUIRE(raised.next(1000, 1, 1, 9, 1000) == 9);  // the minimum was raised
  CHECK(raised.next(1005, 9, 100, 9, 1000) == 9);  // one and four are less than what there is: nothing is taken
  CHECK(raised.next(1016, 9, 100, 9, 1000) == 18);
}

TEST_CASE("how long a recommendation holds is a constant; without one the number follows at once, but never below") {
  HpaBehavior behavior({.scale_down_stabilization_seconds = 30});
  CHECK(behavior.next(0, 20, 20, 1, 100) == 20);
  CHECK(behavior.next(15, 20, 5, 1, 100) == 20);
  CHECK(behavior.next(29, 20, 6, 1, 100) == 20);
  CHECK(behavior.next(30, 20, 5, 1, 100) == 6);  // twenty was 30 s ago, six is not
  CHECK(behavior.next(59, 6, 5, 1, 100) == 5);
}

}  // namespace
}  // namespace sluice::scheduler
