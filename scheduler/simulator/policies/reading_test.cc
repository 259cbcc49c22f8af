#include "scheduler/simulator/policies/reading.h"

#include <cmath>

#include "scheduler/testing/fluid.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

using testing::FluidJob;

Job with(const Measurement& m) {
  Job job{.running = true};
  job.observation = {m, ""};
  return job;
}

TEST_CASE("rates are exact while the trainer starves and while it does not") {
  const FluidJob fluid{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 2};
  for (const double remote_cores : {1.0, 5.0, 10.0, 20.0}) {
    const auto reading = read(with(fluid.steady(remote_cores, 100)));
    REQUIRE(reading);
    CHECK(reading->demand_samples_per_second == Approx(8000));
    CHECK(*reading->local_rate_per_core == Approx(1000));
    CHECK(*reading->remote_rate_per_core == Approx(770));
  }
}

TEST_CASE("what cannot be read, by situation") {
  const FluidJob fluid{.demand = 8000, .local_cores = 2};
  Measurement still = fluid.steady(1, 100);
  still.samples_per_second = 0;
  Measurement no_compute = fluid.steady(1, 100);
  no_compute.compute_share = 0;
  CHECK_FALSE(read(with(still)));
  CHECK_FALSE(read(with(no_compute)));
  CHECK_FALSE(read(Job{}));
  CHECK_FALSE(read(with(fluid.steady(0, 100)))->remote_rate_per_core);
  Measurement idle = fluid.steady(1, 100);
  idle.remote->busy_cores = 0;
  CHECK_FALSE(read(with(idle))->remote_rate_per_core);
}

TEST_CASE("capacities are those of the CPU there is") {
  const FluidJob fluid{.demand = 8000, .local_cores = 2};
  Job job = with(fluid.steady(3, 100));
  job.hosts = {{.limit_millicores = 1500}, {.limit_millicores = 500}};
  job.worker_millicores = 2000;
  const auto reading = read(job);
  REQUIRE(reading);
  CHECK(local_capacity(job, *reading) == Approx(2000));
  CHECK(worker_capacity(job, *reading) == Approx(1540));
}

TEST_CASE("workers that are starting or draining do not deliver") {
  Job job;
  job.workers = {{.ready = true}, {.ready = false}, {.ready = true, .draining = true}};
  CHECK(ready_workers(job) == 1);
}

TEST_CASE("a measurement is used unless one of its figures is no number, or negative") {
  const FluidJob fluid{.demand = 8000, .local_cores = 2};
  struct Row {
    const char* situation;
    void (*spoil)(Measurement&);
    bool want;
  };
  const Row rows[] = {
      {"as it should be", [](Measurement&) {}, true},
      {"without remote work", [](Measurement& m) { m.remote.reset(); }, true},
      {"without a queue", [](Measurement& m) { m.queue.reset(); }, true},
      {"without local work", [](Measurement& m) { m.local.reset(); }, true},
      {"nothing done", [](Measurement& m) { m.samples_per_second = 0; }, true},
      {"0/0", [](Measurement& m) { m.compute_share = std::nan(""); }, false},
      {"1/0", [](Measurement& m) { m.samples_per_second = HUGE_VAL; }, false},
      {"a rate below zero", [](Measurement& m) { m.samples_per_second = -1e-9; }, false},
      {"feeders' 0/0", [](Measurement& m) { m.local->busy_cores = std::nan(""); }, false},
      {"workers' 0/0", [](Measurement& m) { m.remote->samples_per_second = std::nan(""); }, false},
      {"a queue of 0/0",
       [](Measurement& m) {
         m.queue = {std::nan(""), 16};
       },
       false},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    Measurement m = fluid.steady(3, 100);
    row.spoil(m);
    const Job job = with(m);
    CHECK((usable_measurement(job) == &*job.observation.measurement) == row.want);
    if (!row.want) CHECK_FALSE(read(job));
  }
  CHECK(usable_measurement(Job{}) == nullptr);
}

TEST_CASE("quotients that no trainer and no core reaches are no rates") {
  Measurement m = FluidJob{.demand = 8000, .local_cores = 2}.steady(3, 100);
  m.local = SourceRate{1e300, 1e-300};
  m.remote = SourceRate{5e-324, 1e9};
  REQUIRE(read(with(m)));
  CHECK_FALSE(read(with(m))->local_rate_per_core);
  CHECK_FALSE(read(with(m))->remote_rate_per_core);
  m.compute_share = 1e-300;
  CHECK_FALSE(read(with(m)));
}

TEST_CASE("whole counts, by quotient") {
  struct Row {
    double count;
    int want;
  };
  const Row rows[] = {{0, 0},
                      {1e-9, 1},
                      {2, 2},
                      {2.0001, 3},
                      {-0.5, 0},
                      {-1e300, 0},
                      {999'999.5, 1'000'000},
                      {1e300, 1'000'000},
                      {HUGE_VAL, 1'000'000},
                      {-HUGE_VAL, 0},
                      {std::nan(""), 0}};
  for (const Row& row : rows) {
    INFO(row.count);
    CHECK(whole_count(row.count) == row.want);
  }
}

}  // namespace
}  // namespace sluice::scheduler
