#include "scheduler/estimate/estimator.h"

#include <cmath>

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

// How growth is judged by what it brought.
namespace sluice::scheduler::testing {
namespace {

TEST_CASE("growth that promised little is not judged, however little it brought") {
  const FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  Job job = MakeJob("a").holds(7, "n1").measures(physics.steady(7, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate_of(job, kNowSeconds - 200, kConfig).memory;
  job = MakeJob("a").memory(memory).holds(8, "n1").measures(physics.steady(4, kNowSeconds)).obj();
  const Estimate estimate = estimate_of(job, kNowSeconds, kConfig);
  CHECK_FALSE(estimate.useless_above_cores);
  CHECK(estimate.memory->before_growth->remote_cores == 7);  // it may yet come to be judged, with what is added to it
}

TEST_CASE("a job that shrinks is judged from there when it grows again") {
  const FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  Job job = MakeJob("a").holds(8, "n1").measures(physics.steady(8, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate_of(job, kNowSeconds - 200, kConfig).memory;
  CHECK(memory.before_growth->remote_cores == 8);
  job = MakeJob("a").memory(memory).holds(2, "n1").measures(physics.steady(2, kNowSeconds)).obj();
  CHECK(estimate_of(job, kNowSeconds, kConfig).memory->before_growth->remote_cores == 2);
}

TEST_CASE("the demand tripled while it grew: it is faster than before, so its workers are of use") {
  FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  Job job = MakeJob("a").holds(2, "n1").measures(physics.steady(2, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate_of(job, kNowSeconds - 200, kConfig).memory;
  physics.demand = 24'000;
  job = MakeJob("a").memory(memory).holds(8, "n1").measures(physics.steady(4, kNowSeconds)).obj();
  const Estimate estimate = estimate_of(job, kNowSeconds, kConfig);
  CHECK(estimate.starved);
  CHECK_FALSE(estimate.useless_above_cores);
}

// Held two workers, and was given six more, which have been ready for so long, and of which all but so many work.
Job grown(double ready_seconds, double cores_with_effect, int importing = 0) {
  const FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  Job before = MakeJob("a").holds(2, "n1").measures(physics.steady(2, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate_of(before, kNowSeconds - 200, kConfig).memory;
  Job now = MakeJob("a").memory(memory).holds(8, "n1").measures(physics.steady(cores_with_effect, kNowSeconds)).obj();
  for (int i = 2; i < 8; ++i) now.workers[i].ready_since_seconds = kNowSeconds - ready_seconds;
  now.observation.measurement->workers_at_work = 8 - importing;
  return now;
}

TEST_CASE("growth is judged by what it brought, once it can have brought something") {
  const double at_work_seconds = FluidJob{}.steady(0, kNowSeconds).window_seconds;
  struct Row {
    const char* situation;
    Job job;
    std::optional<double> useless_above_cores;
  };
  Row rows[] = {
      {"ready for a window, and still importing", grown(at_work_seconds, 2, 6), std::nullopt},
      {"ready for a window, and one still importing", grown(at_work_seconds, 2, 1), std::nullopt},
      {"ready for less than a window", grown(at_work_seconds - 1, 2), std::nullopt},
      {"at work for a whole window, and no faster", grown(at_work_seconds, 2), 2},
      {"at work, and hardly faster", grown(at_work_seconds, 2.5), 2},
      {"at work, and as fast as promised", grown(at_work_seconds, 8), std::nullopt},
      {"at work, and half as fast as promised", grown(at_work_seconds, 5), std::nullopt},
      {"one of them is not there", grown(at_work_seconds, 2), std::nullopt},
  };
  rows[7].job.workers.pop_back();
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Estimate estimate = estimate_of(row.job, kNowSeconds, kConfig);
    CHECK(estimate.starved);
    CHECK(estimate.useless_above_cores == row.useless_above_cores);
  }
}

TEST_CASE("a job whose prefetched first batches were fast keeps the workers that make it so again") {
  const FluidJob speech{.demand = 310, .local_rate = 1010, .remote_rate = 1000, .local_cores = 0.04};
  const auto at = [&](double seconds, int workers, const Measurement& m, std::optional<EstimatorMemory> memory) {
    MakeJob job("a");
    job.worker_millicores(200).holds(workers, "n1").local_millicores(40).measures(m);
    if (memory) job.memory(*memory);
    return estimate_of(job.obj(), kNowSeconds + seconds, kConfig);
  };
  const auto window = [&](double seconds, double remote_cores) {
    return speech.steady(remote_cores, kNowSeconds + seconds);
  };
  struct Row {
    const char* situation;
    double share_of_window;  // that training had begun in, before there was a worker
  };
  for (const Row& row :
       {Row{"training began in the window", 0.35}, Row{"it went on at that speed for a whole window", 1}}) {
    CAPTURE(row.situation);
    Measurement burst = window(0, 0);
    burst.samples_per_second = 300 * row.share_of_window;
    burst.compute_share = 0.9 * row.share_of_window;
    burst.batches_in_window = 300;
    burst.wait_share = 0.1 * row.share_of_window;
    const Estimate first = at(0, 0, burst, std::nullopt);
    const Estimate fed =
        at(100, 2, window(100, 0.28), first.memory);  // in between workers start, and nothing is judged
    CHECK(fed.starved);                               // 6 % of the time: the curve is soft
    CHECK_FALSE(fed.useless_above_cores);
  }
}

TEST_CASE("a job gives back what was useless, keeps what it had, and may try again after ten minutes") {
  Job job = grown(1000, 2);
  job.memory = estimate_of(job, kNowSeconds, kConfig).memory;
  const auto workers_after = [&](double seconds) {
    Job later_job = job;
    later_job.observation.measurement->window_end_seconds += seconds;
    const Estimate estimate = estimate_of(later_job, kNowSeconds + seconds, kConfig);
    return estimate.useless_above_cores;
  };
  CHECK(workers_after(1) == 2);
  CHECK(workers_after(kConfig.useless_retry_seconds - 1) == 2);
  job.memory->before_growth.reset();
  CHECK_FALSE(workers_after(kConfig.useless_retry_seconds));
}

TEST_CASE("what was useless to the old demand, or to a job that waited, says nothing of others") {
  Job job = grown(1000, 2);
  job.memory = estimate_of(job, kNowSeconds, kConfig).memory;
  REQUIRE(job.memory->useless_above_cores == 2);
  SECTION("it does not wait any more: nothing is held against it") {
    Measurement& m = *job.observation.measurement;
    m.window_end_seconds += 5;
    m.wait_share = 0.02, m.compute_share = 0.98;
    m.batches_in_window = 1;  // too little to learn from
    CHECK_FALSE(estimate_of(job, kNowSeconds + 5, kConfig).useless_above_cores);
    m.wait_share = 0.5;
    CHECK(estimate_of(job, kNowSeconds + 5, kConfig).useless_above_cores == 2);
  }
  SECTION("another demand") {
    job.observation.measurement = FluidJob{.demand = 16'000}.steady(2, kNowSeconds + 20);
    job.workers.pop_back();  // one was lost: growth is not judged now
    CHECK_FALSE(estimate_of(job, kNowSeconds + 20, kConfig).useless_above_cores);
  }
}

TEST_CASE("evaluation in the window does not make growth look useless: speed is per second of training") {
  const FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  const Job before = MakeJob("a").holds(2, "n1").measures(physics.steady(2, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate_of(before, kNowSeconds - 200, kConfig).memory;
  for (const double trained : {1.0, 0.5}) {
    CAPTURE(trained);
    // 42 % of full speed, where two workers made 32 % of a somewhat smaller demand.
    Measurement m = physics.steady(8, kNowSeconds);
    m.compute_share = 0.42 * trained;
    m.wait_share = 0.58 * trained;
    m.samples_per_second = 9000 * m.compute_share;
    m.local = SourceRate{1000, 1};
    m.remote = SourceRate{3080, 4};
    const Job job = MakeJob("a").memory(memory).holds(8, "n1").measures(m).obj();
    CHECK_FALSE(estimate_of(job, kNowSeconds, kConfig).useless_above_cores);
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
