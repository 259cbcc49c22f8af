#include "scheduler/policies/reading.h"

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

}  // namespace
}  // namespace sluice::scheduler
