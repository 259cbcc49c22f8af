#include "scheduler/simulator/policies/synergy_tune.h"

#include <algorithm>
#include <numeric>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

using Cores = std::vector<std::int64_t>;

// A server of 8 GPUs and 24 cores: 3 per GPU.
SynergyJob job(int gpus, int demand_cores) { return {gpus, 1000 * demand_cores, std::int64_t{3000} * gpus}; }

TEST_CASE("Synergy-Tune on a server of 8 GPUs and 24 cores, by situation") {
  struct Row {
    const char* situation;
    std::vector<SynergyJob> jobs;
    Cores want_cores;
  };
  const Row rows[] = {
      {"no job", {}, {}},
      {"one job that needs less than its share", {job(8, 4)}, {4}},
      {"one job that needs more than there is", {job(8, 70)}, {24}},
      {"a language model's CPU goes to its neighbour", {job(4, 2), job(4, 40)}, {2, 22}},
      {"all demands fit", {job(2, 10), job(2, 1), job(4, 12)}, {10, 1, 12}},
      {"two hungry jobs: each its share", {job(4, 40), job(4, 40)}, {12, 12}},
      {"the larger gang goes first", {job(2, 16), job(4, 16), job(2, 2)}, {6, 16, 2}},
      {"the second in line is cut to its share, and gets what is left",
       {job(4, 14), job(2, 12), job(2, 1)},
       {14, 9, 1}},
      {"the first in line is cut when the last has not even its share", {job(4, 20), job(2, 6), job(2, 6)}, {12, 6, 6}},
      {"idle GPUs leave their CPU to the others", {job(2, 20)}, {20}},
      {"beyond its share the second takes what is free, not what the first has", {job(4, 14), job(2, 12)}, {14, 10}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    Cores want = row.want_cores;
    for (std::int64_t& cores : want) cores *= 1000;
    CHECK(synergy_tune(row.jobs, 24000) == want);
  }
}

TEST_CASE("those with most CPU per GPU are cut first") {
  // 13 for four GPUs and 8 for two; cutting the second is enough for a fifth core, not for a sixth.
  CHECK(synergy_tune({job(4, 13), job(2, 8), job(2, 5)}, 24000) == Cores{13000, 6000, 5000});
  CHECK(synergy_tune({job(4, 13), job(2, 8), job(2, 6)}, 24000) == Cores{12000, 6000, 6000});
  // Either of them would do. 3.5 cores per GPU are less than 4, though 14 are more than 8.
  CHECK(synergy_tune({job(4, 14), job(2, 8), job(2, 4)}, 24000) == Cores{14000, 6000, 4000});
}

TEST_CASE("of two with as many GPUs the one that demands more goes first, also for what is left in the end") {
  CHECK(synergy_tune({job(2, 7), job(2, 8)}, 13000) == Cores{6000, 7000});
  CHECK(synergy_tune({job(2, 8), job(2, 7)}, 13000) == Cores{7000, 6000});
}

TEST_CASE("whatever the demands: capacity is kept, and no job is below the smaller of demand and share") {
  std::uint32_t state = 1;
  const auto random = [&state](int below) {
    state = state * 1664525U + 1013904223U;
    return static_cast<int>((state >> 8U) % static_cast<std::uint32_t>(below));
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<SynergyJob> jobs;
    for (int gpus = 8; gpus > 0;) {
      const int some = 1 + random(std::min(gpus, 4));
      jobs.push_back(job(some, random(40)));
      gpus -= some;
    }
    const Cores given = synergy_tune(jobs, 24000);
    const std::int64_t sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
    REQUIRE(sum <= 24000);
    std::int64_t unmet = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      REQUIRE(given[i] >= std::min(jobs[i].demand_millicores, jobs[i].share_millicores));
      REQUIRE(given[i] <= jobs[i].demand_millicores);
      unmet += jobs[i].demand_millicores - given[i];
    }
    REQUIRE((unmet == 0 || sum == 24000));
  }
}

}  // namespace
}  // namespace sluice::scheduler
