// The simulator beside a recorded run: what is matched with what, and how the error is counted.
#include "scheduler/simulator/report/calibration.h"

#include <cmath>

#include "scheduler/simulator/report/experiment.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

constexpr const char* kRecord = R"({"phases": [
  {"key": "b", "jobs": {"vision": {"compute_seconds": 1, "wait_seconds": 1, "most_workers_ready": 0}}},
  {"key": "c", "jobs": {"vision": {"compute_seconds": 80, "wait_seconds": 20, "most_workers_ready": 4, "note": "x"},
                        "speech": {"compute_seconds": 50, "wait_seconds": 0, "most_workers_ready": 1}}}]})";

TEST_CASE("A record's phase is found by its key, with all of its jobs") {
  const auto jobs = parse_record(kRecord, "demo.json", "c");
  REQUIRE(jobs.ok());
  REQUIRE(jobs->size() == 2);
  const RecordedJob& vision = (*jobs)[0].name == "vision" ? (*jobs)[0] : (*jobs)[1];
  CHECK(vision.name == "vision");
  CHECK(vision.training_seconds() == 100);
  CHECK(vision.in_loop_utilisation() == 0.8);
  CHECK(vision.most_workers == 4);
}

TEST_CASE("What is no record is told by its file, and so is a phase that is not there") {
  struct Row {
    const char* situation;
    const char* text;
    const char* phase;
    const char* want;
  };
  const Row rows[] = {
      {"nothing", "", "c", "demo.json: not a record of make demo"},
      {"not JSON", "{phases", "c", "demo.json: not a record of make demo"},
      {"a list", "[]", "c", "demo.json: not a record of make demo"},
      {"no phases", "{}", "c", "demo.json: not a record of make demo"},
      {"phases that are none", R"({"phases": 3})", "c", "demo.json: not a record of make demo"},
      {"a phase without jobs", R"({"phases": [{"key": "c"}]})", "c", "demo.json: not a record of make demo"},
      {"a time that is a word",
       R"({"phases": [{"key": "c", "jobs": {"a": {"compute_seconds": "long", "wait_seconds": 0,
           "most_workers_ready": 0}}}]})",
       "c", "demo.json: not a record of make demo"},
      {"a job that never trained",
       R"({"phases": [{"key": "c", "jobs": {"a": {"compute_seconds": 0, "wait_seconds": 0,
           "most_workers_ready": 0}}}]})",
       "c", "demo.json: \"a\" has not trained"},
      {"a clock that ran backwards",
       R"({"phases": [{"key": "c", "jobs": {"a": {"compute_seconds": 5, "wait_seconds": -1,
           "most_workers_ready": 0}}}]})",
       "c", "demo.json: \"a\" has not trained"},
      {"a phase of no jobs", R"({"phases": [{"key": "c", "jobs": {}}]})", "c", "demo.json: phase \"c\" has no jobs"},
      {"another phase", kRecord, "z", "demo.json: no phase \"z\""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const auto jobs = parse_record(row.text, "demo.json", row.phase);
    REQUIRE_FALSE(jobs.ok());
    CHECK(jobs.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(jobs.error().message(), Catch::StartsWith(row.want));
  }
}

// A run of one job: 120 s in all, with three workers of half a core at most.
RunRecord simulated() {
  RunRecord run;
  run.jobs.resize(1);
  run.jobs[0].start_seconds = 10;
  run.jobs[0].finish_seconds = 130;
  run.jobs[0].timeline = {{10, 0.5, 1, 0, 2}, {40, 0.9, 1, 1.5, 2}, {90, 0.9, 1, 1, 2}};
  return run;
}

TEST_CASE("Jobs are matched by name, and the error is that of the training time") {
  Workload workload = {testing::job(0, 1, 90, 2)};
  workload[0].name = "vision";
  const auto jobs = calibrate({{"vision", 80, 20, 4}}, simulated(), workload, 0.5);
  REQUIRE(jobs.ok());
  CHECK((*jobs)[0].training_seconds == 120);
  CHECK((*jobs)[0].error() == Approx(0.2));
  CHECK((*jobs)[0].utilisation == Approx(0.75));
  CHECK((*jobs)[0].most_workers == 3);
  const auto missing = calibrate({{"speech", 80, 20, 4}}, simulated(), workload, 0.5);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message() == "the scenario has no job \"speech\"");
}

TEST_CASE("The simulator trains the jobs of the recorded make demo as long as they trained there, within a quarter") {
  const char* phase = GENERATE("b", "c");
  const std::string path = std::string("scheduler/simulator/catalogue/demo-") + phase + ".yaml";
  const char* record_path = "scheduler/simulator/catalogue/demo-record.json";
  const auto scenario_text = read_file(path), record_text = read_file(record_path);
  REQUIRE((scenario_text.ok() && record_text.ok()));
  const auto scenario = parse_scenario(*scenario_text, path);
  const auto record = parse_record(*record_text, record_path, phase);
  REQUIRE((scenario.ok() && record.ok()));
  RunOptions options;
  options.timeline = true;
  const auto run = run_policy("sluice", scenario->cluster, scenario->jobs, options);
  REQUIRE(run.ok());
  const double worker_cores = static_cast<double>(scenario->cluster.physics.worker_millicores) / 1000;
  const auto jobs = calibrate(*record, *run, scenario->jobs, worker_cores);
  REQUIRE(jobs.ok());
  INFO(calibration_table(*jobs));
  double sum = 0;
  for (const CalibratedJob& job : *jobs) {
    CAPTURE(job.recorded.name);
    CHECK(std::abs(job.error()) <= 0.25);
    sum += std::abs(job.error());
  }
  CHECK(sum / static_cast<double>(jobs->size()) <= 0.15);
}

TEST_CASE("The table says mean and worst, too long and too short alike") {
  CalibratedJob slow, fast;
  slow.recorded = {"vision", 80, 20, 4};
  slow.training_seconds = 110;
  fast.recorded = {"speech", 50, 0, 1};
  fast.training_seconds = 35;
  const std::string table = calibration_table({slow, fast});
  CHECK_THAT(table, Catch::Contains("vision") && Catch::Contains("10.0 %") && Catch::Contains("-30.0 %"));
  CHECK_THAT(table, Catch::Contains("error of the training time: mean 20.0 %, worst 30.0 %"));
}

}  // namespace
}  // namespace sluice::simulator
