// What the figures of a run mean, on runs that were written by hand.
#include "scheduler/simulator/report/figures.h"

#include <cmath>
#include <set>

#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;

// Two gangs of 8 on 16 GPUs, an hour of work each; the first takes two.
struct Written {
  Cluster cluster = testing::small_cluster();
  Workload workload = {job(0, 8, 3600, 9), job(0, 8, 3600, 0.5)};
  RunRecord run, baseline;

  Written() {
    run.makespan_seconds = 7200;
    run.jobs.resize(2);
    run.jobs[0] = {.start_seconds = 0,
                   .finish_seconds = 7200,
                   .busy_gpu_seconds = 8 * 3600,
                   .allocated_gpu_seconds = 8 * 7200,
                   .core_seconds = 7200,
                   .worker_core_seconds = 1800};
    run.jobs[1] = {.start_seconds = 0,
                   .finish_seconds = 3600,
                   .busy_gpu_seconds = 8 * 3600,
                   .allocated_gpu_seconds = 8 * 3600,
                   .core_seconds = 0};
    baseline = run;
  }
  double figure(Figure which) const { return at(figures_of(run, baseline, workload, cluster), which); }
};

TEST_CASE("Figures are what they say") {
  Written written;
  written.baseline.jobs[0].finish_seconds = 3600;
  written.run.jobs[1].workers_started = 3;
  written.run.jobs[1].allocation_changes = 6;
  struct Row {
    Figure figure;
    double want;
  };
  const Row rows[] = {
      {Figure::kAllocatedUtilisation, 2.0 / 3},
      {Figure::kWallUtilisation, 0.5},  // all arrive at once: until the last one ends
      {Figure::kMeanJct, 5400},
      {Figure::kMedianJct, 5400},
      {Figure::kP99Jct, 3600 + 0.99 * 3600},
      {Figure::kMakespan, 7200},
      {Figure::kCoreHours, 2},
      {Figure::kCost, 24 * 2.48 + 2 * 0.05},
      {Figure::kP99Slowdown, 1.99},
      {Figure::kWorstAgainstStatic, 2},
      {Figure::kHarmed, 0.5},
      {Figure::kWorkersStarted, 3},
      {Figure::kChurn, 2},  // 6 changes in 3 hours of jobs
  };
  for (const Row& row : rows) {
    CAPTURE(text_of(row.figure).title);
    CHECK(written.figure(row.figure) == Approx(row.want));
  }
}

TEST_CASE("Where a GPU's price includes its host, only the CPU of data workers costs more") {
  Written written;
  written.cluster.physics.gpu_price_includes_host = true;
  CHECK(written.figure(Figure::kCost) == Approx(24 * 2.48 + 0.5 * 0.05));
  CHECK(written.figure(Figure::kCoreHours) == Approx(2));
}

TEST_CASE("Harm is more than 5 % and a minute beyond the static share, and less is forgiven") {
  struct Row {
    double before, now, want;
  };
  const Row rows[] = {
      {3600, 3600, 0}, {3600, 3839, 0}, {3600, 3841, 0.5}, {3600, 1000, 0}, {100, 164, 0}, {100, 166, 0.5},
  };
  for (const Row& row : rows) {
    CAPTURE(row.before, row.now);
    Written written;
    written.baseline.jobs[0].finish_seconds = row.before;
    written.run.jobs[0].finish_seconds = row.now;
    CHECK(written.figure(Figure::kHarmed) == row.want);
  }
}

TEST_CASE("The wait for GPUs counts for completion, and not for slowdown or harm") {
  Written written;
  for (RunRecord* run : {&written.run, &written.baseline}) {
    run->jobs[0].start_seconds += 5000;
    run->jobs[0].finish_seconds += 5000;
  }
  written.baseline.jobs[0].start_seconds = 0;
  written.baseline.jobs[0].finish_seconds = 7200;
  CHECK(written.figure(Figure::kMeanJct) == 5400 + 2500);
  CHECK(written.figure(Figure::kWorstAgainstStatic) == 1);
  CHECK(written.figure(Figure::kHarmed) == 0);
}

TEST_CASE("Wall utilisation ends with the last arrival, so that a long last job does not decide it") {
  Written written;
  written.workload[1].arrival_seconds = 1800;
  written.run.jobs[0].busy_gpu_seconds_while_arriving = 8 * 900;
  written.run.jobs[1].busy_gpu_seconds_while_arriving = 0;
  CHECK(written.figure(Figure::kWallUtilisation) == Approx(8.0 * 900 / (16 * 1800)));
}

TEST_CASE("Jobs that all arrive at one moment are measured from then on, whenever that is") {
  for (const double arrival : {0.0, 1800.0, 1e6}) {
    CAPTURE(arrival);
    Written written;
    for (JobSpec& spec : written.workload) spec.arrival_seconds += arrival;
    written.run.makespan_seconds += arrival;
    CHECK(written.figure(Figure::kWallUtilisation) == Approx(0.5));
  }
}

TEST_CASE("Where no job computes before the last arrival, utilisation until then is 0") {
  Written written;
  written.workload[1].arrival_seconds = 10;  // both trainers still start
  CHECK(written.figure(Figure::kWallUtilisation) == 0);
  CHECK(written.figure(Figure::kAllocatedUtilisation) > 0);
}

TEST_CASE("Every figure has a key, a title and a unit of its own") {
  std::set<std::string_view> keys, titles;
  for (std::size_t i = 0; i < kFigures; ++i) {
    const FigureText& text = text_of(static_cast<Figure>(i));
    CHECK(keys.insert(text.key).second);
    CHECK(titles.insert(text.title).second);
    CHECK(text.key.find(' ') == std::string_view::npos);
  }
}

TEST_CASE("The bound is what section 1 of the model says, weighted by work") {
  const Cluster cluster = testing::small_cluster();
  struct Row {
    const char* situation;
    Workload workload;
    double slowdown, knee, single;
  };
  const Row rows[] = {
      {"one that is fed", {job(0, 1, 100, 0.5)}, 1, 0.5, 1},
      {"one that wants three times its share", {job(0, 1, 100, 9)}, 3, 9, 3},
      {"half of the work of each", {job(0, 1, 100, 9), job(0, 1, 100, 0.5)}, 2, 4.75, 3},
      {"by GPU-seconds, not by jobs", {job(0, 3, 100, 9), job(0, 1, 100, 0.5)}, 2.5, (27 + 0.5) / 4, 3},
      {"by length, too", {job(0, 1, 300, 9), job(0, 1, 100, 0.5)}, 2.5, (27 + 0.5) / 4, 3},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Bound bound = bound_of(row.workload, cluster);
    CHECK(bound.mean_slowdown == Approx(row.slowdown).epsilon(0.01));
    CHECK(bound.mean_knee == Approx(row.knee));
    CHECK(bound.best_single_job == row.single);
    CHECK(bound.effective_cores == Approx(3 + 0.77 * 64 / 16));
    CHECK(bound.when_full >= 1);
    CHECK(bound.when_full <= bound.mean_slowdown + 1e-9);
  }
}

TEST_CASE("The bound is taken on the hosts that have least, and with CPU as it adds up") {
  struct Row {
    const char* situation;
    void (*set)(Cluster&, JobSpec&);
    double c;  // local-equivalent cores per GPU that a job of 2 GPUs has
  };
  const Row rows[] = {
      {"as it is", [](Cluster&, JobSpec&) {}, 3},
      {"a host of half the CPU",
       [](Cluster& c, JobSpec&) {
         c.groups.push_back({"poor", 1, 8, 12, 0, false});
       },
       1.5},
      {"a poor host that is too small for it",
       [](Cluster& c, JobSpec&) {
         c.groups.push_back({"one", 1, 1, 1, 0, false});
       },
       3},
      {"a feeder of 5 cores", [](Cluster&, JobSpec& spec) { spec.local_cores = 5; }, 2.5},
      {"cores that do not add up", [](Cluster& c, JobSpec&) { c.physics.local_exponent = 0.5; }, std::sqrt(6) / 2},
      {"a gang", [](Cluster&, JobSpec& spec) { spec.gpus = 16; }, 3},
      {"a gang on one small host and more",
       [](Cluster& c, JobSpec& spec) {
         spec.gpus = 20, c.groups.push_back({"one", 1, 4, 8, 0, false});
       },
       2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster = testing::small_cluster();
    JobSpec spec = job(0, 2, 100, 9);
    row.set(cluster, spec);
    const Bound bound = bound_of({spec}, cluster);
    CHECK(bound.best_single_job == Approx(9 / row.c));
    CHECK(bound.mean_slowdown == Approx(1 / progress(row.c / 9, 6)));
  }
  Cluster better = testing::small_cluster();
  better.physics.remote_efficiency = 1.5;  // then hosts of trainers may work for others, too
  CHECK(bound_of({job(0, 1, 100, 9)}, better).effective_cores == Approx(1.5 * (48 + 64) / 16));
}

TEST_CASE("While every GPU is allocated the CPU limits the gain") {
  // 6.08 local-equivalent cores per GPU for 12 wanted: of E[s] = 4 only half can be had.
  const Bound bound = bound_of({job(0, 1, 100, 12)}, testing::small_cluster());
  CHECK(bound.when_full == Approx(4 * 6.08 / 12).epsilon(0.01));
}

TEST_CASE("A job whose samples change their cost is cut where they do, and no work is lost") {
  Physics physics;
  const Workload jobs = {job(5, 2, 950, 4), job(7, 1, 300, 8)};
  CHECK(pieces_of(jobs, physics, 1).size() == 2);  // nothing changes
  physics.cost_change = 0.5;
  physics.cost_change_seconds = 300;
  const Workload pieces = pieces_of(jobs, physics, 1);
  REQUIRE(pieces.size() == 4 + 1);
  double work = 0;
  for (const JobSpec& piece : pieces) work += piece.gpu_seconds();
  CHECK(work == Approx(2 * 950 + 300));
  CHECK(pieces[0].knee_cores_per_gpu == 4);  // the first stretch is as the job list says
  CHECK(pieces[3].ideal_seconds == Approx(50));
  for (int stretch = 1; stretch < 4; ++stretch)
    CHECK(pieces[stretch].knee_cores_per_gpu == Approx(4 * cost_factor(physics, 1, 0, stretch)));
  CHECK(pieces[4].knee_cores_per_gpu == 8);
}

TEST_CASE("The bound of changing demands is kept by a run under them") {
  Cluster cluster = testing::small_cluster();
  cluster.physics.cost_change = 0.8;
  cluster.physics.cost_change_seconds = 100;
  const Workload jobs = {job(0, 8, 5000, 4)};
  testing::ScriptedPolicy policy;
  const auto run = simulate(cluster, jobs, policy, {});
  REQUIRE(run.ok());
  // Alone, with its share and nothing else, it takes exactly E[s] times as long.
  const Bound bound = bound_of(pieces_of(jobs, cluster.physics, 1), cluster);
  CHECK(run->jobs[0].finish_seconds == Approx(5000 * bound.mean_slowdown).epsilon(1e-6));
  CHECK(bound.mean_slowdown != Approx(bound_of(jobs, cluster).mean_slowdown).epsilon(0.01));
}

}  // namespace
}  // namespace sluice::simulator
