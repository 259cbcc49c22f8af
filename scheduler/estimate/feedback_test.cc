#include "scheduler/estimate/estimator.h"

#include <cmath>

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

// How the knee is corrected by its effect.
namespace sluice::scheduler::testing {
namespace {

// A job that is starved although, by its estimate, 9 workers and one local core are 99 % of its need.
MakeJob misjudged() {
  Measurement m = FluidJob{.demand = 8000, .local_rate = 1000, .remote_rate = 770}.steady(9, kNowSeconds);
  m.local = SourceRate{1000, 1};
  m.wait_share = 0.15;  // the curve says 0.11
  m.compute_share = 0.85;
  m.samples_per_second = 8000 * m.compute_share;
  return MakeJob("a").holds(9, "n1").measures(m);
}

TEST_CASE("starved although supply looks sufficient: the knee is raised by a tenth, once per window") {
  Job job = misjudged().obj();
  const Estimate first = estimate_of(job, kNowSeconds, kConfig);
  REQUIRE(first.starved);
  CHECK(first.knee_cores == Approx(8 * 1.1));
  CHECK(first.measured_knee_cores == Approx(8));
  CHECK(first.memory->feedback_floor == Approx(1.1));

  job.memory = first.memory;
  job.allocated_workers = 10;  // as if the raise had been obeyed at once
  while (job.workers.size() < 10)
    job.workers.push_back({"x" + std::to_string(job.workers.size()), "n1", true, 0, 0, false});
  job.observation.measurement->window_end_seconds += 5;
  CHECK(estimate_of(job, kNowSeconds + 5, kConfig).memory->feedback == Approx(1.1));
  job.observation.measurement->window_end_seconds += 10;
  CHECK(estimate_of(job, kNowSeconds + 15, kConfig).memory->feedback == Approx(1.21));
}

TEST_CASE("the noisier the series, the more windows it takes to correct the knee") {
  struct Row {
    double noise;
    int want_windows;
  };
  for (const Row& row : {Row{0, 1}, Row{0.14, 1}, Row{0.3, 4}}) {
    CAPTURE(row.noise);
    Job job = misjudged().obj();
    EstimatorMemory memory;
    memory.local_rate_per_core = Tracked::starting_at(1000);
    memory.remote_rate_per_core = Tracked::starting_at(770);
    memory.knee_cores =
        Tracked{.recent = 8, .mean = 8, .published = 8, .count = 3, .noise = row.noise, .noise_values = 40};
    job.memory = memory;
    int windows = 0;
    while (job.memory->feedback == 1 && windows < 20) {
      ++windows;
      job.memory = estimate_of(job, kNowSeconds + 15 * windows, kConfig).memory;
      job.observation.measurement = later(*job.observation.measurement);
    }
    CHECK(windows == row.want_windows);
  }
}

TEST_CASE("under noise, a window of waiting among others that hardly wait proves no shortage") {
  Job job = misjudged().obj();
  job.memory = EstimatorMemory{};
  job.memory->knee_cores =
      Tracked{.recent = 8, .mean = 8, .published = 8, .count = 3, .noise = 0.4, .noise_values = 40};
  for (int window = 0; window < 20; ++window) {
    Measurement& m = *job.observation.measurement;
    m.wait_share = window % 5 == 0 ? 0.3 : 0.03;
    m.compute_share = 1 - m.wait_share;
    m.samples_per_second = 8000 * m.compute_share;
    job.memory = estimate_of(job, kNowSeconds + 15 * window, kConfig).memory;
    job.observation.measurement = later(m);
  }
  CHECK(job.memory->feedback == 1);
}

TEST_CASE("the raise is as large as the shortfall, within bounds") {
  struct Row {
    double wait_share, want;
  };
  for (const Row& row : {Row{0.06, 1}, Row{0.12, 1}, Row{0.15, 1.1}, Row{0.3, 0.99125 / 0.71475},
                         Row{0.4, 0.99125 / 0.60480}, Row{0.8, 2}}) {
    CAPTURE(row.wait_share);
    // Counters that still say 8000 samples/s of demand and rates of 1000 and 770 per core.
    Job job = misjudged().obj();
    Measurement& m = *job.observation.measurement;
    m.wait_share = row.wait_share;
    m.compute_share = 1 - row.wait_share;
    m.samples_per_second = 8000 * m.compute_share;
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == Approx(row.want));
  }
}

TEST_CASE("a starved trainer's knee is raised only where its queue is known to be nearly empty") {
  struct Row {
    const char* what;
    std::optional<PrefetchQueue> queue;
    double want;
  };
  const Row rows[] = {
      {"the queue is empty", PrefetchQueue{0, 12}, 1.1},
      {"it is nearly so", PrefetchQueue{5.9, 12}, 1.1},
      {"half of it is ready", PrefetchQueue{6, 12}, 1},
      {"between two epochs of five seconds", PrefetchQueue{8, 12}, 1},
      {"it is not known what lies ready", std::nullopt, 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    Job job = misjudged().obj();
    job.observation.measurement->queue = row.queue;
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == Approx(row.want));
  }
}

TEST_CASE("slow, but with less supply than it needs: no correction, whatever it waits") {
  // Five workers and one core are 61 % of the need, and it runs at 40 %.
  Job job = MakeJob("a").holds(5, "n1").measures(FluidJob{.demand = 8000}).obj();
  Measurement& m = *job.observation.measurement;
  m.wait_share = 0.6;
  m.compute_share = 0.4;
  m.samples_per_second = 3200;
  const Estimate estimate = estimate_of(job, kNowSeconds, kConfig);
  REQUIRE(estimate.starved);
  CHECK(estimate.memory->feedback == 1);
}

TEST_CASE("feedback waits until the workers in force have been at work for the whole window") {
  struct Row {
    const char* situation;
    void (*disturb)(Job&);
  };
  const Row rows[] = {
      {"one is starting", [](Job& job) { job.workers[3].ready = false; }},
      {"one became ready inside the window", [](Job& job) { job.workers[3].ready_since_seconds = kNowSeconds - 10; }},
      {"one still imported its pipeline when the window began",
       [](Job& job) { job.observation.measurement->workers_at_work = 8; }},
      {"none had finished anything then", [](Job& job) { job.observation.measurement->workers_at_work = 0; }},
      {"one is draining", [](Job& job) { job.workers[3].draining = true; }},
      {"one was lost", [](Job& job) { job.workers.pop_back(); }},
      {"the workers idle: they are not what is missing",
       [](Job& job) {
         job.observation.measurement->remote = SourceRate{1540, 2};
       }},
      {"the feeder's CPU changed inside the window",
       [](Job& job) {
         job.memory = EstimatorMemory{};
         job.memory->feeders = FeederSpell{1, kNowSeconds - 10};
       }},
      {"the supply does not look sufficient", [](Job& job) { job.allocated_workers = 7, job.workers.resize(7); }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = misjudged().obj();
    row.disturb(job);
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == 1);
  }
}

TEST_CASE("feedback takes workers for at work that had finished samples, or are ready where that is not known") {
  for (const std::optional<double> at_work : {std::optional<double>(), std::optional<double>(9)}) {
    Job job = misjudged().obj();
    job.observation.measurement->workers_at_work = at_work;
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == Approx(1.1));
  }
}

TEST_CASE("feedback stays within its limits") {
  Job job = misjudged().obj();
  job.memory = estimate_of(job, kNowSeconds, kConfig).memory;
  job.memory->feedback = 7.9;
  job.memory->knee_cores = Tracked{.recent = 1, .mean = 1, .published = 1, .count = 2};  // three refine nothing
  job.memory->steady.through_seconds = 0;
  job.observation.measurement = later(*job.observation.measurement);
  Config config;
  config.publish_threshold = 100;  // keep the knee of 1 core
  config.feedback_noise = 100;     // and believe one window, however far it is off
  CHECK(estimate_of(job, kNowSeconds + 15, config).memory->feedback == 8);
}

// Sated with twice what its estimate says it needs.
MakeJob generously_supplied() {
  return MakeJob("a").holds(20, "n1").measures(FluidJob{.demand = 8000, .remote_rate = 770});
}

TEST_CASE("sated with supply to spare lowers the knee only as far as nothing better is known") {
  Job job = generously_supplied().obj();

  SECTION("all rates measured: the measurement stands") {
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == 1);
  }
  SECTION("an earlier raise is undone") {
    job.memory = estimate_of(job, kNowSeconds - 30, kConfig).memory;
    job.memory->folded_through_seconds = job.memory->steady.through_seconds = 0;
    job.memory->feedback = 1.5;
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == Approx(1.5 * 0.97));
  }
  SECTION("but not to where it starved the job before") {
    job.memory = estimate_of(job, kNowSeconds - 30, kConfig).memory;
    job.memory->folded_through_seconds = job.memory->steady.through_seconds = 0;
    job.memory->feedback = job.memory->feedback_floor = 1.5;
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == 1.5);
  }
  SECTION("a rate that is only assumed may be wrong by any amount") {
    job.observation.measurement->local.reset();
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == Approx(0.97));
  }
  SECTION("workers that min demands are no evidence") {
    job.observation.measurement->local.reset();
    job.min_workers = 20;
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == 1);
  }
}

TEST_CASE("what starved the old demand says nothing about a new one") {
  Job job = MakeJob("a").measures(FluidJob{.demand = 8000}.steady(2, kNowSeconds)).obj();
  job.memory = estimate_of(job, kNowSeconds, kConfig).memory;
  job.memory->feedback = job.memory->feedback_floor = 1.5;
  job.observation.measurement = later(FluidJob{.demand = 7900}.steady(2, kNowSeconds));
  CHECK(estimate_of(job, kNowSeconds + 15, kConfig).memory->feedback_floor == 1.5);
  job.observation.measurement = later(FluidJob{.demand = 16000}.steady(2, kNowSeconds));
  CHECK(estimate_of(job, kNowSeconds + 15, kConfig).memory->feedback_floor == 0);
}

TEST_CASE("a correction of an assumed rate is forgotten once the rate is measured") {
  const FluidJob truth{.demand = 8000};
  Job job = MakeJob("a").measures(truth.steady(0, kNowSeconds)).obj();
  job.memory = estimate_of(job, kNowSeconds, kConfig).memory;
  job.memory->feedback = 2;
  job.memory->feedback_floor = 2;
  job.observation.measurement = later(truth.steady(1, kNowSeconds));
  const Estimate estimate = estimate_of(job, kNowSeconds + 15, kConfig);
  CHECK(estimate.memory->feedback == 1);
  CHECK(estimate.memory->feedback_floor == 0);
}

TEST_CASE("a better value of the knee takes back the correction that made up for its error") {
  struct Row {
    const char* situation;
    double feedback, second_demand, want;
  };
  // The first window says 8000; the mean of two is what the second one makes of it.
  const Row rows[] = {
      {"it had been too low, and was raised by as much", std::sqrt(1.1), 8800, 1},
      {"it had been too low by half of the raise", 1.1, 8800, std::sqrt(1.1)},
      {"it had been too low by more than the raise", 1.02, 8800, 1},
      {"it had been too high: the raise has another reason", 1.1, 7600, 1.1},
      {"it had been too high, and was lowered", 0.96, 7600, 0.96 / std::sqrt(0.95)},
      {"it had been too high by more than it was lowered", 0.99, 7600, 1},
      {"it was right", 1.3, 8000, 1.3},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = MakeJob("a").measures(FluidJob{.demand = 8000}.steady(2, kNowSeconds)).obj();
    job.memory = estimate_of(job, kNowSeconds, kConfig).memory;
    job.memory->feedback = row.feedback;
    job.observation.measurement = later(FluidJob{.demand = row.second_demand}.steady(2, kNowSeconds));
    CHECK(estimate_of(job, kNowSeconds + 15, kConfig).memory->feedback == Approx(row.want));
  }
}

TEST_CASE("sated with just the headroom: the knee stays, whatever is only assumed") {
  struct Row {
    int workers;
    double want;
  };
  // Of 8 cores: 106 % and 116 %; there is to spare from 111 % on.
  for (const Row& row : {Row{11, 1}, Row{12, 0.97}}) {
    CAPTURE(row.workers);
    Measurement m = FluidJob{.demand = 8000}.steady(row.workers, kNowSeconds);
    m.local.reset();
    m.compute_share = 0.995;
    m.wait_share = 0.005;
    m.samples_per_second = 8000 * m.compute_share;
    const Job job = MakeJob("a").holds(row.workers, "n1").measures(m).obj();
    CHECK(estimate_of(job, kNowSeconds, kConfig).memory->feedback == Approx(row.want));
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
