#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

constexpr double kCorePrice = 0.05;  // per hour, on the nodes without GPUs
constexpr FluidJob kLarge{.demand = 60'000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};

struct Prices {
  const char* situation;
  double host = 0;  // of a host with eight GPUs
  double core = 0;
  double want_core_hours = 0;  // that an hour of a trainer with four of its GPUs is worth
};
const Prices kUsual{"by the prices of host and nodes", 8, kCorePrice, 80};
const Prices kWorthless{"a trainer for nothing", 0.001, kCorePrice, 0.01};

// A trainer with four of a host's GPUs, and so many workers.
Job priced_trainer(int workers, const FluidJob& fluid = kHungry) {
  Job job = MakeJob("a").gpus(4).holds(workers, "n").measures(fluid).obj();
  job.hosts[0].node = "h";
  return job;
}

JobPlan priced_plan(const Prices& prices, Job job) {
  const Node host{.name = "h", .allocatable_millicores = 12'000, .gpus = 8, .price_per_hour = prices.host};
  const Node node{.name = "n", .allocatable_millicores = 128'000, .price_per_hour = 128 * prices.core};
  // Data workers go to nodes without GPUs first, however cheap a core is here.
  const Node other{.name = "other", .allocatable_millicores = 64'000, .gpus = 8, .price_per_hour = 0.64};
  const Node full{
      .name = "full", .allocatable_millicores = 8000, .requested_by_others_millicores = 8000, .price_per_hour = 0.008};
  Config config;
  config.objective = Objective::kCost;
  config.core_hours_per_gpu_hour = 1;
  return decide({kNowSeconds, {host, node, other, full}, {std::move(job)}, {}, {}}, config).jobs[0];
}

TEST_CASE("objective cost: workers come and go until a sample is as cheap as it can be") {
  struct Row {
    Prices prices;
    FluidJob fluid;
    int held;
  };
  const Prices cheap{"a cheap host", 0.4, kCorePrice, 4}, dear{"a dear host", 20, kCorePrice, 200};
  const Prices middling{"a host that is neither", 2, kCorePrice, 20};
  const Prices hostless{"no price of the host", 0, kCorePrice, 4}, coreless{"no price of a core", 8, 0, 4};
  const Row rows[] = {{kUsual, kHungry, 1},   {kUsual, kHungry, 30},  {kUsual, kLarge, 40},   {kUsual, kLarge, 110},
                      {middling, kLarge, 40}, {middling, kLarge, 61}, {cheap, kHungry, 1},    {cheap, kHungry, 30},
                      {dear, kHungry, 1},     {dear, kHungry, 30},    {hostless, kHungry, 1}, {hostless, kHungry, 30},
                      {coreless, kHungry, 1}};
  for (const auto& [prices, fluid, held] : rows) {
    CAPTURE(prices.situation, fluid.demand, held);
    const auto price_of_sample = [&, hour = prices.want_core_hours, of = fluid](int workers) {
      return (hour + workers) / of.full_speed_fraction(workers);
    };
    double least = price_of_sample(0);
    for (int workers = 1; workers <= 120; ++workers) least = std::min(least, price_of_sample(workers));
    const JobPlan plan = priced_plan(prices, priced_trainer(held, fluid));
    CHECK(price_of_sample(plan.workers) <= 1.03 * least);
    if (plan.reason == Reason::kFlat)
      CHECK(price_of_sample(plan.workers + 1) >= (1 - 1e-6) * price_of_sample(plan.workers));
  }
}

TEST_CASE("objective cost: a worker that is there stays where a new one would just not be worth its price") {
  const Prices prices{"", 2, kCorePrice, 20};
  const int wanted = priced_plan(prices, priced_trainer(1)).workers;
  CHECK(priced_plan(prices, priced_trainer(wanted)).workers == wanted);
  CHECK(priced_plan(prices, priced_trainer(wanted + 1)).workers == wanted + 1);
  CHECK(priced_plan(prices, priced_trainer(wanted + 5)).workers < wanted + 5);
}

TEST_CASE("objective cost: one worker shows what a remote core is worth, where a trainer starves") {
  CHECK(priced_plan(kWorthless, priced_trainer(0)).workers == 1);
  CHECK(priced_plan(kWorthless, priced_trainer(1)).workers == 0);  // it is known now, and too little
  CHECK(priced_plan(kWorthless, priced_trainer(1)).reason == Reason::kFlat);
  // Its host is full and supplies 1.2 times the demand: it waits a little.
  const FluidJob fluid{.demand = 10'000, .local_rate = 1000, .local_cores = 12};
  Job waits = priced_trainer(0, fluid);
  waits.local_adjustable = true;
  CHECK(priced_plan(kWorthless, waits).workers == 0);
}

}  // namespace
}  // namespace sluice::scheduler::testing
