// The simulator against a recorded real run of `make demo` (scheduler/simulator/catalogue/demo-record.json).
//
// The scenario holds the demo's cluster and jobs, with knees as the operator measured them in that run. So scenario
// and record belong together: a run on a slower machine has other knees. Compared are the results: how long each job
// trained, its utilisation, and its number of workers at the end.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/simulator/world/engine.h"
#include "src/base/result.h"

namespace sluice::simulator {

// One job of one phase of the demo.
struct RecordedJob {
  std::string name;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double most_workers = 0;

  double training_seconds() const { return compute_seconds + wait_seconds; }
  double in_loop_utilisation() const { return compute_seconds / training_seconds(); }
};

// Errors: InvalidArgument naming the file when it is no record, or has no such phase.
Result<std::vector<RecordedJob>> parse_record(std::string_view text, const std::string& file, const std::string& phase);

struct CalibratedJob {
  RecordedJob recorded;
  double training_seconds = 0;  // simulated
  double utilisation = 0;
  double most_workers = 0;

  double error() const { return training_seconds / recorded.training_seconds() - 1; }
};

// Jobs of record and run, matched by name. Errors: InvalidArgument when the workload lacks one.
Result<std::vector<CalibratedJob>> calibrate(const std::vector<RecordedJob>& record, const RunRecord& run,
                                             const Workload& workload, double worker_cores);

std::string calibration_table(const std::vector<CalibratedJob>& jobs);

}  // namespace sluice::simulator
