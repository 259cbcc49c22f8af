#include "scheduler/policies/fastflow_profile.h"

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

TEST_CASE("FastFlow's decision, by profile") {
  struct Row {
    const char* situation;
    FastFlowProfile profile;  // G, L, R of one worker
    bool want_offload;
    int want_workers;
    double want_ratio;
  };
  const Row rows[] = {
      {"local CPU is faster than the accelerator", {100, 150, 50}, false, 0, 0},
      {"8 % slower: not worth it", {108, 100, 50}, false, 0, 0},
      {"10 % slower: one worker", {111, 100, 50}, true, 1, 50.0 / 111},
      {"half as fast, two workers close the gap exactly", {200, 100, 50}, true, 2, 0.5},
      {"the gap is a twentieth of a worker more than four: four", {302.5, 100, 50}, true, 4, 200.0 / 300},
      {"the gap is a fifth of a worker more than four: five", {310, 100, 50}, true, 5, 250.0 / 310},
      {"hardly any local CPU: remote does more than everything", {100, 1, 300}, true, 1, 1},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(fastflow_offloads(row.profile, {}) == row.want_offload);
    if (!row.want_offload) continue;
    const int workers = fastflow_workers(row.profile, {});
    CHECK(workers == row.want_workers);
    CHECK(fastflow_offload_ratio(row.profile, workers, {}) == Approx(row.want_ratio));
  }
}

TEST_CASE("too few workers: the samples are split by speed") {
  CHECK(fastflow_offload_ratio({1000, 100, 50}, 2, {}) == Approx(100.0 / 200));
  CHECK(fastflow_offload_ratio({1000, 100, 50}, 4, {}) == Approx(200.0 / 300));
}

TEST_CASE("what offloading costs the trainer's CPU raises what the remote side has to do") {
  const FastFlowProfile profile{200, 100, 55};
  CHECK(fastflow_offload_ratio(profile, 2, {}) == Approx(110.0 / 200));
  CHECK(fastflow_offload_ratio(profile, 2, {.offload_overhead = 0.2}) == Approx(110.0 / 210));
}

}  // namespace
}  // namespace sluice::scheduler
