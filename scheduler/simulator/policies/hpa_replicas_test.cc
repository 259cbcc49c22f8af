#include "scheduler/simulator/policies/hpa_replicas.h"

#include <limits>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

constexpr double kNow = 10'000;

// A pod of one core that has been ready for long.
HpaPod old_pod(double percent) {
  return {.running = true,
          .ready = true,
          .started_at_seconds = kNow - 3600,
          .ready_changed_at_seconds = kNow - 3590,
          .request_millicores = 1000,
          .used_millicores = percent * 10,
          .metric_at_seconds = kNow - 20,
          .metric_window_seconds = 30};
}

std::vector<HpaPod> times(int count, const HpaPod& pod) { return std::vector<HpaPod>(count, pod); }

std::vector<HpaPod> operator+(std::vector<HpaPod> a, const std::vector<HpaPod>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

HpaPod missing() {
  HpaPod pod = old_pod(0);
  pod.used_millicores.reset();
  return pod;
}

HpaPod pending() {
  HpaPod pod = missing();
  pod.running = false;
  pod.ready = false;
  return pod;
}

// Ready for so many seconds, in a window of 30 s that ended 20 s ago.
HpaPod young(double percent, double ready_for_seconds) {
  HpaPod pod = old_pod(percent);
  pod.started_at_seconds = kNow - ready_for_seconds - 10;
  pod.ready_changed_at_seconds = kNow - ready_for_seconds;
  return pod;
}

HpaPod never_ready(double percent, double age_seconds) {
  HpaPod pod = old_pod(percent);
  pod.ready = false;
  pod.started_at_seconds = pod.ready_changed_at_seconds = kNow - age_seconds;
  return pod;
}

HpaPod no_longer_ready(double percent) {
  HpaPod pod = old_pod(percent);
  pod.ready = false;
  pod.ready_changed_at_seconds = kNow - 60;
  return pod;
}

TEST_CASE("replicas by CPU, by situation") {
  struct Row {
    const char* situation;
    std::vector<HpaPod> pods;
    std::optional<int> want;
  };
  const Row rows[] = {
      {"one saturated worker asks for a second", times(1, old_pod(100)), 2},
      {"four saturated workers ask for a fifth", times(4, old_pod(100)), 5},
      {"twenty saturated workers ask for five more", times(20, old_pod(100)), 25},
      {"88 % is within the tolerance of 80 %", times(10, old_pod(88)), 10},
      {"89 % is not", times(10, old_pod(89)), 12},
      {"72 % is within the tolerance", times(10, old_pod(72)), 10},
      {"71 % is not", times(10, old_pod(71)), 9},
      {"88.9 % is 88 %: the controller computes in whole percent", times(10, old_pod(88.9)), 10},
      {"I/O-bound workers at 60 % while the trainer starves: fewer", times(4, old_pod(60)), 3},
      {"idle", times(4, old_pod(0)), 0},
      {"the mean counts, not the busiest", times(2, old_pod(100)) + times(2, old_pod(60)), 4},
      {"no pod", {}, std::nullopt},
      {"no metric for any pod", times(3, missing()), std::nullopt},
      {"only pending pods", times(3, pending()), std::nullopt},

      {"scaling up: a pending pod counts as idle, which cancels the step", times(4, old_pod(100)) + times(1, pending()),
       5},
      {"scaling up: many more needed than are pending", times(4, old_pod(160)) + times(1, pending()), 8},
      {"scaling up: pending pods would turn it around, so nothing", times(4, old_pod(100)) + times(6, pending()), 10},
      {"scaling down: pending pods do not count", times(4, old_pod(40)) + times(6, pending()), 2},
      {"scaling up: a pod without a metric counts as idle", times(4, old_pod(160)) + times(1, missing()), 8},
      {"scaling down: a pod without a metric counts as busy", times(4, old_pod(20)) + times(2, missing()), 4},
      {"scaling down: pods without metrics would turn it around", times(2, old_pod(70)) + times(4, missing()), 6},
      {"within the tolerance, and a pod without a metric", times(4, old_pod(80)) + times(1, missing()), 5},
      {"within the tolerance from below, and a pod that is pending", times(4, old_pod(75)) + times(1, pending()), 5},
      {"within the tolerance once a pod without a metric counts as idle", times(10, old_pod(96)) + times(1, missing()),
       11},

      {"young: its window began before it was ready", times(2, old_pod(40)) + times(2, young(100, 49)), 1},
      {"young: a full window since it became ready", times(2, old_pod(40)) + times(2, young(100, 51)), 4},
      {"old, ready once, not ready now: counts", times(1, old_pod(100)) + times(1, no_longer_ready(100)), 3},
      {"old, never ready: does not count", times(4, old_pod(40)) + times(4, never_ready(100, 400)), 2},
      {"in its first five minutes and not ready: does not count",
       times(4, old_pod(40)) + times(4, never_ready(100, 200)), 2},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(hpa_replicas_by_cpu(static_cast<int>(row.pods.size()), row.pods, kNow, {}) == row.want);
  }
}

TEST_CASE("pods of different sizes weigh by their request") {
  HpaPod large = old_pod(100);
  large.request_millicores = 7000;
  large.used_millicores = 7000;
  CHECK(hpa_replicas_by_cpu(2, {large, old_pod(0)}, kNow, {}) == 2);    // 7 of 8 cores: 87 %, within the tolerance
  CHECK(hpa_replicas_by_cpu(2, {large, old_pod(100)}, kNow, {}) == 3);  // 8 of 8
}

TEST_CASE("another target and another tolerance") {
  CHECK(hpa_replicas_by_cpu(10, times(10, old_pod(90)), kNow, {.target_cpu_percent = 50}) == 18);
  CHECK(hpa_replicas_by_cpu(10, times(10, old_pod(88)), kNow, {.tolerance = 0.05}) == 11);
  // A target over 100 % assumes missing pods to be at the target.
  CHECK(hpa_replicas_by_cpu(4, times(2, old_pod(100)) + times(2, missing()), kNow, {.target_cpu_percent = 150}) == 4);
}

TEST_CASE("replicas by an average value, by situation") {
  struct Row {
    const char* situation;
    int current;
    double metric;
    int want;
  };
  const Row rows[] = {
      {"nothing queued", 3, 0, 0},
      {"exactly enough", 3, 6, 3},
      {"a little more, within the tolerance", 10, 21.9, 10},
      {"a little more than that", 10, 22.1, 12},
      {"far too few: one jump", 1, 40, 20},
      {"far too many", 40, 20, 10},
      {"from zero", 0, 3, 2},
      {"from zero, nothing queued", 0, 0, 0},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(hpa_replicas_by_average_value(row.current, row.metric, 2, 0.1) == row.want);
  }
}

TEST_CASE("the edges of a pod's first five minutes and of its first readiness") {
  const HpaPod idle = old_pod(40);
  HpaPod starting = never_ready(100, 299);
  HpaPod lost_early = no_longer_ready(100);  // ready for 29 s, long ago
  lost_early.started_at_seconds = kNow - 3600;
  lost_early.ready_changed_at_seconds = kNow - 3600 + 29;
  HpaPod lost_late = lost_early;
  lost_late.ready_changed_at_seconds = kNow - 3600 + 30;
  HpaPod fresh = young(100, 50);  // its window of 30 s began just when it became ready
  struct Row {
    const char* situation;
    HpaPod pod;
    bool want_counted;
  };
  const Row rows[] = {
      {"299 s old and not ready", starting, false},
      {"300 s old, and never ready", never_ready(100, 300), false},
      {"300 s old, ready, whatever its window",
       [] {
         HpaPod pod = old_pod(100);
         pod.started_at_seconds = kNow - 300;
         pod.ready_changed_at_seconds = kNow - 1;
         return pod;
       }(),
       true},
      {"not ready any more since 29 s after it started: as if never", lost_early, false},
      {"not ready any more since 30 s after it started: it was ready once", lost_late, true},
      {"a window as old as its readiness", fresh, true},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    // Four at 40 % with another four at 100 %: 70 % of eight, or 40 % of four.
    CHECK(hpa_replicas_by_cpu(8, times(4, idle) + times(4, row.pod), kNow, {}) == (row.want_counted ? 7 : 2));
  }
}

TEST_CASE("absurd loads still give a number of replicas") {
  CHECK(hpa_replicas_by_average_value(1, 1e300, 1e-9, 0.1) == 1'000'000);
  CHECK(hpa_replicas_by_average_value(1, std::numeric_limits<double>::infinity(), 1, 0.1) == 1'000'000);
  CHECK(hpa_replicas_by_average_value(3, std::numeric_limits<double>::quiet_NaN(), 1, 0.1) == 0);
  CHECK(hpa_replicas_by_cpu(1, times(1, old_pod(1e300)), kNow, {}) == 1'000'000);
}

TEST_CASE("more replicas are set than there are pods: what these want is no reason to take the others back") {
  CHECK(hpa_replicas_by_cpu(10, times(4, old_pod(160)) + times(1, missing()), kNow, {}) == 10);
  CHECK(hpa_replicas_by_cpu(7, times(4, old_pod(160)) + times(1, missing()), kNow, {}) == 8);
}

}  // namespace
}  // namespace sluice::scheduler
