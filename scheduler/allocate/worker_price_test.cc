#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

constexpr double kCorePrice = 0.05;  // per hour, on the nodes without GPUs

struct Prices {
  const char* situation;
  double host = 0;  // of a host with eight GPUs
  double core = 0;
  double want_core_hours = 0;  // that an hour of a trainer with four of its GPUs is worth
};

// A trainer with four of a host's GPUs, and so many workers.
Job trainer(int workers) {
  Job job = MakeJob("a").gpus(4).holds(workers, "n").measures(kHungry).obj();
  job.hosts[0].node = "h";
  return job;
}

JobPlan plan_at(const Prices& prices, Job job) {
  const Node host{.name = "h", .allocatable_millicores = 1000, .gpus = 8, .price_per_hour = prices.host};
  const Node node{.name = "n", .allocatable_millicores = 64'000, .price_per_hour = 64 * prices.core};
  Config config;
  config.objective = Objective::kCost;
  return decide({kNowSeconds, {host, node}, {std::move(job)}, {}, {}}, config).jobs[0];
}

TEST_CASE("objective cost: workers come and go until a sample is as cheap as it can be") {
  const Prices rows[] = {
      {"by the prices of host and nodes", 8, kCorePrice, 80},
      {"a dear host", 20, kCorePrice, 200},
      {"a cheap one", 0.4, kCorePrice, 4},
      {"no price of the host", 0, kCorePrice, 160},
      {"no price of a core", 8, 0, 160},
  };
  for (const Prices& row : rows) {
    const auto price_of_sample = [&](int workers) {
      return (row.want_core_hours + workers) / kHungry.full_speed_fraction(workers);
    };
    double least = price_of_sample(0);
    for (int workers = 1; workers <= 40; ++workers) least = std::min(least, price_of_sample(workers));
    for (const int held : {1, 30}) {
      CAPTURE(row.situation, held);
      const JobPlan plan = plan_at(row, trainer(held));
      CHECK(price_of_sample(plan.workers) <= 1.03 * least);
    }
  }
}

TEST_CASE("objective cost: a worker that is there stays where a new one would just not be worth its price") {
  const Prices prices{"", 2, kCorePrice, 20};
  const int wanted = plan_at(prices, trainer(1)).workers;
  CHECK(plan_at(prices, trainer(wanted)).workers == wanted);
  CHECK(plan_at(prices, trainer(wanted + 1)).workers == wanted + 1);
  CHECK(plan_at(prices, trainer(wanted + 5)).workers < wanted + 5);
}

TEST_CASE("objective cost: one worker shows what a remote core is worth, where a trainer starves") {
  const Prices worthless{"", 0.001, kCorePrice, 0.01};
  Job sated = trainer(0);
  sated.observation.measurement =
      FluidJob{.demand = 8000, .local_rate = 1000, .local_cores = 20}.steady(0, kNowSeconds);
  CHECK(plan_at(worthless, trainer(0)).workers == 1);
  CHECK(plan_at(worthless, trainer(1)).workers == 0);  // it is known now, and too little
  CHECK(plan_at(worthless, sated).workers == 0);
  CHECK(plan_at(worthless, trainer(1)).reason == Reason::kFlat);
}

}  // namespace
}  // namespace sluice::scheduler::testing
