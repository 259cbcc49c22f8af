#include "scheduler/simulator/policies/fastflow_profile.h"

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

TEST_CASE("FastFlow's decision, by profile") {
  struct Row {
    const char* situation;
    FastFlowProfile profile;  // G, L, R of one worker
    bool want_offload;
    int want_workers;
  };
  const Row rows[] = {
      {"local CPU is faster than the accelerator", {100, 150, 50}, false, 0},
      {"8 % slower: not worth it", {108, 100, 50}, false, 0},
      {"10 % slower: one worker", {111, 100, 50}, true, 1},
      {"half as fast, two workers close the gap exactly", {200, 100, 50}, true, 2},
      {"the gap is a twentieth of a worker more than four: four", {302.5, 100, 50}, true, 4},
      {"the gap is a fifth of a worker more than four: five", {310, 100, 50}, true, 5},
      {"hardly any local CPU: remote does more than everything", {100, 1, 300}, true, 1},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(fastflow_offloads(row.profile, {}) == row.want_offload);
    if (!row.want_offload) continue;
    CHECK(fastflow_workers(row.profile, {}) == row.want_workers);
  }
}

}  // namespace
}  // namespace sluice::scheduler
