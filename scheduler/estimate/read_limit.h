// Step 1 of decide(): whether a job's reads limit it, and not its CPU.
//
// An executor that waits for what it reads leaves its CPU idle. That alone proves nothing: where every read takes long,
// more executors read more at a time. So a finding takes two things:
//   sign    the trainer starves, CPU idles, and executors are blocked in reads
//   proof   the job's CPU has changed by 30 % or more, up or down, and its speed followed by less than a quarter
// The finding ends when speed follows CPU again, when the trainer hardly waits, or after ten minutes. It lasts twice as
// long each time it is made again.
//
// In a simulated cluster whose storage gave a quarter of what the jobs could read, CPU went to and fro between jobs
// that could not use it. They started 1.8 times as many workers.
//
// Thread safety: pure functions on values.
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/estimate.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// Takes a new measurement into `reads` and `read_bytes_per_sample` of Estimate::memory. REQUIRES: a measurement, and
// estimate.known
void watch_reads(const Job& job, const Config& config, Estimate& estimate);

// Whether reads explain that the job is slow: by a finding, or by the sign alone where the plan shares its storage out.
// There its CPU stays as it is, and proves nothing. REQUIRES: as watch_reads()
bool reads_slow(const Job& job, const Config& config, const Estimate& estimate);

// REQUIRES: as watch_reads()
bool reads_limit(const Job& job, const Config& config, const Estimate& estimate);

// Local-equivalent cores that the job should have at most: what it holds, or uses with headroom. None while its reads
// do not limit it.
std::optional<double> useful_supply_cores(const Job& job, const Estimate& estimate, const Config& config);

}  // namespace sluice::scheduler
