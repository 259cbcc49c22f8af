// The rates that a baseline reads off one measurement of a job: as clients and executors report them, without any model
// of Sluice.
//
// Thread safety: pure functions on values.
#pragma once

#include <optional>

#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

struct Reading {
  double demand_samples_per_second = 0;       // of the trainer if it never waited: samples / compute time
  std::optional<double> local_rate_per_core;  // samples/s per busy core
  std::optional<double> remote_rate_per_core;
};

// The job's measurement, unless one of its figures is none. A metrics source does answer 0/0 and 1/0, and autoscalers
// that took them for numbers have caused outages. Nullptr: there is none, or it must not be used.
const Measurement* usable_measurement(const Job& job);

// None: no usable measurement, or one in which the trainer did nothing.
std::optional<Reading> read(const Job& job);

// Samples/s that the feeders could deliver with the CPU they may use. REQUIRES: reading.local_rate_per_core
double local_capacity(const Job& job, const Reading& reading);

// Samples/s of one data worker at work all the time. REQUIRES: reading.remote_rate_per_core
double worker_capacity(const Job& job, const Reading& reading);

// Workers that deliver.
int ready_workers(const Job& job);

// So many, rounded up; at most a million and at least none, so that it is a number for every quotient of two figures.
int whole_count(double count);

}  // namespace sluice::scheduler
