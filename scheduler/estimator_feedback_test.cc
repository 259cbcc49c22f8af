#include "scheduler/estimator.h"

#include <cmath>

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

// How beliefs are corrected by their effect: the feedback on the knee, and the judgement of growth.
namespace sluice::scheduler::testing {
namespace {

const Config kConfig;

// A job whose estimate says that its 9 workers (plus one local core) are 99 % of what it needs, and that is starved all
// the same.
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
  const Belief first = estimate(job, kNowSeconds, kConfig);
  REQUIRE(first.starved);
  CHECK(first.knee_cores == Approx(8 * 1.1));
  CHECK(first.measured_knee_cores == Approx(8));
  CHECK(first.memory->feedback_floor == Approx(1.1));

  job.memory = first.memory;
  job.allocated_workers = 10;  // as if the raise had been obeyed at once
  while (job.workers.size() < 10)
    job.workers.push_back({"x" + std::to_string(job.workers.size()), "n1", true, 0, 0, false});
  job.observation.measurement->window_end_seconds += 5;
  CHECK(estimate(job, kNowSeconds + 5, kConfig).memory->feedback == Approx(1.1));
  job.observation.measurement->window_end_seconds += 10;
  CHECK(estimate(job, kNowSeconds + 15, kConfig).memory->feedback == Approx(1.21));
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
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == Approx(row.want));
  }
}

TEST_CASE("a trainer that waits while half of its batches lie ready lacks something else") {
  struct Row {
    const char* what;
    double depth, capacity, want;
  };
  for (const Row& row : {Row{"the queue is empty", 0, 12, 1.1}, Row{"it is nearly so", 5.9, 12, 1.1},
                         Row{"half of it is ready", 6, 12, 1}, Row{"between two epochs of five seconds", 8, 12, 1},
                         Row{"the queue is not known", 0, 0, 1.1}, Row{"it is no number", NAN, 12, 1.1}}) {
    CAPTURE(row.what);
    Job job = misjudged().obj();
    job.observation.measurement->queue_depth = row.depth;
    job.observation.measurement->queue_capacity = row.capacity;
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == Approx(row.want));
  }
}

TEST_CASE("slow, but with less supply than it needs: no correction, whatever it waits") {
  // Five workers and one core are 61 % of the need, and it runs at 40 %.
  Job job = MakeJob("a").holds(5, "n1").measures(FluidJob{.demand = 8000}).obj();
  Measurement& m = *job.observation.measurement;
  m.wait_share = 0.6;
  m.compute_share = 0.4;
  m.samples_per_second = 3200;
  const Belief belief = estimate(job, kNowSeconds, kConfig);
  REQUIRE(belief.starved);
  CHECK(belief.memory->feedback == 1);
}

TEST_CASE("growth that promised little is not judged, however little it brought") {
  const FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  Job job = MakeJob("a").holds(7, "n1").measures(physics.steady(7, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate(job, kNowSeconds - 200, kConfig).memory;
  job = MakeJob("a").memory(memory).holds(8, "n1").measures(physics.steady(4, kNowSeconds)).obj();
  const Belief belief = estimate(job, kNowSeconds, kConfig);
  CHECK_FALSE(belief.useless_above_cores);
  CHECK(belief.memory->before_growth->remote_cores == 7);  // it may yet come to be judged, with what is added to it
}

TEST_CASE("a job that shrinks is judged from there when it grows again") {
  const FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  Job job = MakeJob("a").holds(8, "n1").measures(physics.steady(8, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate(job, kNowSeconds - 200, kConfig).memory;
  CHECK(memory.before_growth->remote_cores == 8);
  job = MakeJob("a").memory(memory).holds(2, "n1").measures(physics.steady(2, kNowSeconds)).obj();
  CHECK(estimate(job, kNowSeconds, kConfig).memory->before_growth->remote_cores == 2);
}

TEST_CASE("the demand tripled while it grew: it is faster than before, so its workers are of use") {
  FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  Job job = MakeJob("a").holds(2, "n1").measures(physics.steady(2, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate(job, kNowSeconds - 200, kConfig).memory;
  physics.demand = 24'000;
  job = MakeJob("a").memory(memory).holds(8, "n1").measures(physics.steady(4, kNowSeconds)).obj();
  const Belief belief = estimate(job, kNowSeconds, kConfig);
  CHECK(belief.starved);
  CHECK_FALSE(belief.useless_above_cores);
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
      {"the supply does not look sufficient", [](Job& job) { job.allocated_workers = 7, job.workers.resize(7); }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = misjudged().obj();
    row.disturb(job);
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == 1);
  }
}

TEST_CASE("feedback takes workers for at work that had finished samples, or are ready where that is not known") {
  for (const std::optional<double> at_work : {std::optional<double>(), std::optional<double>(9)}) {
    Job job = misjudged().obj();
    job.observation.measurement->workers_at_work = at_work;
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == Approx(1.1));
  }
}

// Held two workers, and was given six more, which have been ready for so long, and of which all but so many work.
Job grown(double ready_seconds, double cores_with_effect, int importing = 0) {
  const FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  Job before = MakeJob("a").holds(2, "n1").measures(physics.steady(2, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate(before, kNowSeconds - 200, kConfig).memory;
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
    const Belief belief = estimate(row.job, kNowSeconds, kConfig);
    CHECK(belief.starved);
    CHECK(belief.useless_above_cores == row.useless_above_cores);
  }
}

TEST_CASE("a job whose prefetched first batches were fast keeps the workers that make it so again") {
  const FluidJob speech{.demand = 310, .local_rate = 1010, .remote_rate = 1000, .local_cores = 0.04};
  const auto at = [&](double seconds, int workers, const Measurement& m, std::optional<EstimatorMemory> memory) {
    MakeJob job("a");
    job.worker_millicores(200).holds(workers, "n1").local_millicores(40).measures(m);
    if (memory) job.memory(*memory);
    return estimate(job.obj(), kNowSeconds + seconds, kConfig);
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
    const Belief first = at(0, 0, burst, std::nullopt);
    const Belief fed = at(100, 2, window(100, 0.28), first.memory);  // in between workers start, and nothing is judged
    CHECK(fed.starved);                                              // 6 % of the time: the curve is soft
    CHECK_FALSE(fed.useless_above_cores);
  }
}

TEST_CASE("a job gives back what was useless, keeps what it had, and may try again after ten minutes") {
  Job job = grown(1000, 2);
  job.memory = estimate(job, kNowSeconds, kConfig).memory;
  const auto workers_after = [&](double seconds) {
    Job later_job = job;
    later_job.observation.measurement->window_end_seconds += seconds;
    const Belief belief = estimate(later_job, kNowSeconds + seconds, kConfig);
    return belief.useless_above_cores;
  };
  CHECK(workers_after(1) == 2);
  CHECK(workers_after(kConfig.useless_retry_seconds - 1) == 2);
  job.memory->before_growth.reset();
  CHECK_FALSE(workers_after(kConfig.useless_retry_seconds));
}

TEST_CASE("what was useless to the old demand, or to a job that waited, says nothing of others") {
  Job job = grown(1000, 2);
  job.memory = estimate(job, kNowSeconds, kConfig).memory;
  REQUIRE(job.memory->useless_above_cores == 2);
  SECTION("it does not wait any more: nothing is held against it") {
    Measurement& m = *job.observation.measurement;
    m.window_end_seconds += 5;
    m.wait_share = 0.02, m.compute_share = 0.98;
    m.batches_in_window = 1;  // too little to learn from
    CHECK_FALSE(estimate(job, kNowSeconds + 5, kConfig).useless_above_cores);
    m.wait_share = 0.5;
    CHECK(estimate(job, kNowSeconds + 5, kConfig).useless_above_cores == 2);
  }
  SECTION("another demand") {
    job.observation.measurement = FluidJob{.demand = 16'000}.steady(2, kNowSeconds + 20);
    job.workers.pop_back();  // one was lost: growth is not judged now
    CHECK_FALSE(estimate(job, kNowSeconds + 20, kConfig).useless_above_cores);
  }
}

TEST_CASE("feedback stays within its limits") {
  Job job = misjudged().obj();
  job.memory = estimate(job, kNowSeconds, kConfig).memory;
  job.memory->feedback = 7.9;
  job.memory->knee_cores = Tracked{.recent = 1, .mean = 1, .published = 1, .count = 2};  // three refine nothing
  job.memory->corrected_at_seconds = 0;
  job.observation.measurement = later(*job.observation.measurement);
  Config config;
  config.publish_threshold = 100;  // keep the knee of 1 core
  CHECK(estimate(job, kNowSeconds + 15, config).memory->feedback == 8);
}

// Sated with twice what its estimate says it needs.
MakeJob generously_supplied() {
  return MakeJob("a").holds(20, "n1").measures(FluidJob{.demand = 8000, .remote_rate = 770});
}

TEST_CASE("sated with supply to spare lowers the knee only as far as nothing better is known") {
  Job job = generously_supplied().obj();

  SECTION("all rates measured: the measurement stands") {
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == 1);
  }
  SECTION("an earlier raise is undone") {
    job.memory = estimate(job, kNowSeconds - 30, kConfig).memory;
    job.memory->folded_through_seconds = job.memory->corrected_at_seconds = 0;
    job.memory->feedback = 1.5;
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == Approx(1.5 * 0.97));
  }
  SECTION("but not to where it starved the job before") {
    job.memory = estimate(job, kNowSeconds - 30, kConfig).memory;
    job.memory->folded_through_seconds = job.memory->corrected_at_seconds = 0;
    job.memory->feedback = job.memory->feedback_floor = 1.5;
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == 1.5);
  }
  SECTION("a rate that is only assumed may be wrong by any amount") {
    job.observation.measurement->local.reset();
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == Approx(0.97));
  }
  SECTION("workers that min demands are no evidence") {
    job.observation.measurement->local.reset();
    job.min_workers = 20;
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == 1);
  }
}

TEST_CASE("what starved the old demand says nothing about a new one") {
  Job job = MakeJob("a").measures(FluidJob{.demand = 8000}.steady(2, kNowSeconds)).obj();
  job.memory = estimate(job, kNowSeconds, kConfig).memory;
  job.memory->feedback = job.memory->feedback_floor = 1.5;
  job.observation.measurement = later(FluidJob{.demand = 7900}.steady(2, kNowSeconds));
  CHECK(estimate(job, kNowSeconds + 15, kConfig).memory->feedback_floor == 1.5);
  job.observation.measurement = later(FluidJob{.demand = 16000}.steady(2, kNowSeconds));
  CHECK(estimate(job, kNowSeconds + 15, kConfig).memory->feedback_floor == 0);
}

TEST_CASE("a correction of an assumed rate is forgotten once the rate is measured") {
  const FluidJob truth{.demand = 8000};
  Job job = MakeJob("a").measures(truth.steady(0, kNowSeconds)).obj();
  job.memory = estimate(job, kNowSeconds, kConfig).memory;
  job.memory->feedback = 2;
  job.memory->feedback_floor = 2;
  job.observation.measurement = later(truth.steady(1, kNowSeconds));
  const Belief belief = estimate(job, kNowSeconds + 15, kConfig);
  CHECK(belief.memory->feedback == 1);
  CHECK(belief.memory->feedback_floor == 0);
}

TEST_CASE("a better value of the knee takes back the correction that made up for its error") {
  struct Row {
    const char* situation;
    double feedback, second_demand, want;
  };
  // The first window says 8000; the mean of two is what the second one makes of it.
  const Row rows[] = {
      {"it had been too low, and was raised by as much", 1.05, 8800, 1},
      {"it had been too low by half of the raise", 1.1, 8800, 1.1 / 1.05},
      {"it had been too low by more than the raise", 1.02, 8800, 1},
      {"it had been too high: the raise has another reason", 1.1, 7600, 1.1},
      {"it had been too high, and was lowered", 0.96, 7600, 0.96 / 0.975},
      {"it had been too high by more than it was lowered", 0.99, 7600, 1},
      {"it was right", 1.3, 8000, 1.3},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = MakeJob("a").measures(FluidJob{.demand = 8000}.steady(2, kNowSeconds)).obj();
    job.memory = estimate(job, kNowSeconds, kConfig).memory;
    job.memory->feedback = row.feedback;
    job.observation.measurement = later(FluidJob{.demand = row.second_demand}.steady(2, kNowSeconds));
    CHECK(estimate(job, kNowSeconds + 15, kConfig).memory->feedback == Approx(row.want));
  }
}

TEST_CASE("evaluation in the window does not make growth look useless: speed is per second of training") {
  const FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  const Job before = MakeJob("a").holds(2, "n1").measures(physics.steady(2, kNowSeconds - 200)).obj();
  const EstimatorMemory memory = *estimate(before, kNowSeconds - 200, kConfig).memory;
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
    CHECK_FALSE(estimate(job, kNowSeconds, kConfig).useless_above_cores);
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
    CHECK(estimate(job, kNowSeconds, kConfig).memory->feedback == Approx(row.want));
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
