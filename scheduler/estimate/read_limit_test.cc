#include "scheduler/estimate/read_limit.h"

#include "scheduler/allocate/target.h"
#include "scheduler/estimate/estimator.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// A trainer that takes 8000 samples/s where it never waits: 8 local cores' work. Its feeder has 2 of them.
constexpr double kDemand = 8000;
constexpr double kRatePerCore = 1000;
constexpr double kLocalCores = 2;

struct Window {
  int workers = 0;  // of one core
  double samples_per_second = 0;
  double blocked_share = 1;  // of the idle CPU
};

Job job_with(const Window& window, double end_seconds, std::optional<EstimatorMemory> memory) {
  Job job = MakeJob("a").local_millicores(2000).holds(window.workers, "n1").obj();
  job.memory = std::move(memory);
  Measurement m = FluidJob{.demand = kDemand, .local_cores = kLocalCores}.steady(window.workers, end_seconds);
  const double supply_cores = kLocalCores + 0.77 * window.workers;
  const double busy_share = window.samples_per_second / kRatePerCore / supply_cores;
  m.samples_per_second = window.samples_per_second;
  m.compute_share = window.samples_per_second / kDemand;
  m.wait_share = 1 - m.compute_share;
  m.local = SourceRate{kRatePerCore * kLocalCores * busy_share, kLocalCores * busy_share};
  m.remote.reset();
  if (window.workers > 0)
    m.remote = SourceRate{0.77 * kRatePerCore * window.workers * busy_share, window.workers * busy_share};
  m.blocked_threads = window.blocked_share * (1 - busy_share) * (kLocalCores + window.workers);
  job.observation.measurement = m;
  return job;
}

// The job after these windows, with the estimate of the last one.
std::pair<Job, Estimate> after(const std::vector<Window>& windows) {
  Job job;
  Estimate estimate;
  double end_seconds = kNowSeconds;
  for (const Window& window : windows) {
    job = job_with(window, end_seconds += 100, estimate.memory);
    for (Worker& worker : job.workers) worker.ready_since_seconds = 0;
    estimate = estimate_of(job, end_seconds, {});
  }
  return {job, estimate};
}

TEST_CASE("reads are found to limit a job by two supplies of CPU that gave the same speed, and by blocked executors") {
  struct Row {
    const char* situation;
    std::vector<Window> windows;
    bool want_limit;
  };
  const Row rows[] = {
      {"one window: more executors may read more at a time", {{6, 2000}}, false},
      {"twice the supply, the same speed", {{2, 2000}, {8, 2000}}, true},
      {"half of the supply, the same speed", {{8, 2000}, {2, 2000}}, true},
      {"twice the supply, half as fast again: the reads take long, and more of them run at a time",
       {{2, 2000}, {8, 3100}},
       false},
      {"the supply has hardly changed", {{6, 2000}, {7, 2000}}, false},
      {"little by little, it has changed", {{4, 2000}, {5, 2000}, {6, 2000}, {7, 2000}}, true},
      {"nothing is blocked: something else is short", {{2, 2000, 0}, {8, 2000, 0}}, false},
      {"found, and the storage gives more: speed follows CPU", {{8, 2000}, {2, 2000}, {4, 3500}}, false},
      {"found, and CPU is taken away down to what is used", {{2, 2000}, {8, 2000}, {0, 1950}}, true},
      {"found, and the trainer hardly waits any more", {{2, 2000}, {8, 2000}, {8, 7900}}, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    CHECK(after(row.windows).second.reads_limit == row.want_limit);
  }
}

TEST_CASE("the finding ends by itself, and lasts longer each time it is made again") {
  struct Row {
    int quiet_windows;  // of 100 s
    bool want_limit;
  };
  const std::vector<Window> found = {{2, 2000}, {8, 2000}};
  for (const Row& row : {Row{5, true}, Row{6, false}}) {
    CAPTURE(row.quiet_windows);
    std::vector<Window> windows = found;
    windows.insert(windows.end(), static_cast<std::size_t>(row.quiet_windows), {8, 2000});
    CHECK(after(windows).second.reads_limit == row.want_limit);
  }
  for (const Row& row : {Row{11, true}, Row{12, false}}) {
    CAPTURE(row.quiet_windows);
    std::vector<Window> windows = found;
    windows.insert(windows.end(), 7, {8, 2000});
    windows.push_back({2, 2000});  // and found again
    windows.insert(windows.end(), static_cast<std::size_t>(row.quiet_windows), {2, 2000});
    CHECK(after(windows).second.reads_limit == row.want_limit);
  }
}

TEST_CASE("a job that its reads limit keeps the CPU that it has, and grows again with what it uses") {
  struct Row {
    const char* situation;
    std::vector<Window> windows;
    std::optional<double> want_supply_cores;
  };
  const Row rows[] = {
      {"not limited", {{6, 2000}}, std::nullopt},
      {"it holds more than it uses", {{2, 2000}, {8, 2000}}, kLocalCores + 0.77 * 8},
      {"it uses nearly all that it holds: room to see that the storage gives more",
       {{2, 2000}, {8, 2000}, {1, 2500}},
       1.5 * 2.5},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const auto [job, estimate] = after(row.windows);
    const auto useful = useful_supply_cores(job, estimate, {});
    REQUIRE(useful.has_value() == row.want_supply_cores.has_value());
    if (useful) CHECK(*useful == Approx(*row.want_supply_cores).epsilon(0.01));
  }
}

TEST_CASE("no worker is started for a job that its reads limit, whether or not the plan sets its feeders' CPU") {
  for (const bool adjustable : {false, true}) {
    CAPTURE(adjustable);
    auto [job, estimate] = after({{6, 2000}, {2, 2000}});
    job.local_adjustable = adjustable;
    const Target target = target_of(job, estimate, {});
    CHECK(to_string(target.reason) == "Storage");
    if (adjustable)
      CHECK(target.supply_ratio == Approx(estimate.held_supply_ratio(job)));
    else
      CHECK(target.workers == 2);

    auto [unlimited, other] = after({{2, 2000}});
    unlimited.local_adjustable = adjustable;
    const Target wanted = target_of(unlimited, other, {});
    CHECK(to_string(wanted.reason) == "NeedMet");
    CHECK((adjustable ? wanted.supply_ratio > 1 : wanted.workers > 2));
  }
}

TEST_CASE("the knee of a job that its reads limit is not raised, however much it waits") {
  const auto [job, estimate] = after({{4, 2000}, {10, 2000}, {10, 2000}, {10, 2000}});
  CHECK(estimate.memory->feedback == 1);
}

}  // namespace
}  // namespace sluice::scheduler::testing
