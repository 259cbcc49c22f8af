#include "scheduler/simulator/policies/steady_window.h"

#include <cmath>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

Job job_at(double window_end, double samples_per_second, int ready = 1) {
  Job job{.running = true};
  Measurement m;
  m.window_end_seconds = window_end;
  m.window_seconds = 15;
  m.samples_per_second = samples_per_second;
  m.queue = {4, 16};
  job.observation = {m, ""};
  for (int i = 0; i < ready; ++i) job.workers.push_back({.name = std::to_string(i), .node = "n", .ready = true});
  return job;
}

TEST_CASE("a report is a window after the last change, and none is used twice") {
  SteadyWindow window(1);
  struct Row {
    const char* situation;
    double now, window_end;
    int ready;
    bool want;
  };
  const Row rows[] = {
      {"first seen: the window began before", 1000, 990, 1, false},
      {"its window still reaches back", 1015, 1010, 1, false},
      {"a full window later", 1020, 1015, 1, true},
      {"the same measurement again", 1021, 1015, 1, false},
      {"it overlaps the one before", 1030, 1025, 1, false},
      {"the next", 1035, 1030, 1, true},
      {"a worker became ready", 1050, 1045, 2, false},
      {"its window began before that", 1060, 1055, 2, false},
      {"after it", 1070, 1066, 2, true},
      {"a worker left", 1085, 1081, 1, false},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(window.next(job_at(row.window_end, 10, row.ready), row.now).has_value() == row.want);
  }
}

TEST_CASE("a report is the mean of its windows") {
  SteadyWindow window(2);
  window.next(job_at(0, 1), 100);
  CHECK_FALSE(window.next(job_at(120, 10), 120));
  const auto report = window.next(job_at(140, 5), 140);
  REQUIRE(report);
  CHECK(report->seconds_per_sample == Approx(0.15));
  CHECK(report->queue_depth == 4);
  CHECK_FALSE(window.next(job_at(160, 10), 160));
}

TEST_CASE("a change in the middle starts the report over") {
  SteadyWindow window(2);
  window.next(job_at(0, 1), 100);
  window.next(job_at(120, 10), 120);
  Job more_local = job_at(140, 10);
  more_local.hosts = {{.limit_millicores = 2000}};
  CHECK_FALSE(window.next(more_local, 140));
  more_local.observation.measurement->window_end_seconds = 160;
  CHECK_FALSE(window.next(more_local, 160));
  more_local.observation.measurement->window_end_seconds = 180;
  CHECK(window.next(more_local, 180));
}

TEST_CASE("no measurement, or one of a trainer that stands still, is no report") {
  SteadyWindow window(1);
  window.next(job_at(0, 1), 100);
  Job silent = job_at(140, 0);
  CHECK_FALSE(window.next(silent, 140));
  silent.observation = {std::nullopt, "away"};
  CHECK_FALSE(window.next(silent, 160));
}

TEST_CASE("what is a change and what is none, by situation: the next window is one report old or starts over") {
  struct Row {
    const char* situation;
    void (*change)(Job&);
    bool want_report;  // of the second window
  };
  const Row rows[] = {
      {"nothing", [](Job&) {}, true},
      {"a worker is ordered, and starts", [](Job& job) { job.workers.push_back({.name = "new", .node = "n"}); }, true},
      {"a worker became ready", [](Job& job) { job.workers.push_back({.name = "new", .ready = true}); }, false},
      {"a worker is told to stop", [](Job& job) { job.workers[0].draining = true; }, false},
      {"one stopped, another one came", [](Job& job) { job.workers[0].name = "other"; }, true},
      {"the feeders' limit rose", [](Job& job) { job.hosts[0].limit_millicores += 100; }, false},
      {"the feeders' request rose below their limit", [](Job& job) { job.hosts[0].request_millicores += 100; }, true},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    SteadyWindow window(2);
    Job job = job_at(0, 10);
    job.hosts = {{.request_millicores = 1000, .limit_millicores = 2000}};
    window.next(job, 100);
    job.observation.measurement->window_end_seconds = 120;
    REQUIRE_FALSE(window.next(job, 120));
    row.change(job);
    job.observation.measurement->window_end_seconds = 140;
    CHECK(window.next(job, 140).has_value() == row.want_report);
  }
}

TEST_CASE("a window that answers no number is left out, and the report waits for another one") {
  SteadyWindow window(2);
  window.next(job_at(0, 1), 100);
  CHECK_FALSE(window.next(job_at(120, 10), 120));
  CHECK_FALSE(window.next(job_at(140, std::nan("")), 140));
  const auto report = window.next(job_at(160, 10), 160);
  REQUIRE(report);
  CHECK(report->seconds_per_sample == Approx(0.1));
}

}  // namespace
}  // namespace sluice::scheduler
