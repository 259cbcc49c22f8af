// What a cache before the storage did for the jobs that have a data set, policy by policy.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scheduler/simulator/report/experiment.h"
#include "src/base/table.h"

namespace sluice::simulator {

// Sluice with the caches of others, in the order of reports; empty for a scenario without data sets or without a cache.
std::vector<std::string> cache_rivals(const Scenario& scenario);

// Of all jobs of a run.
DataReads all_reads(const RunRecord& run);

// What reached the storage of a sample's bytes, by seed; not a number where no job has a data set.
std::vector<double> fetches_per_sample(const Grid& grid, int policy);

// Whether each job of every seed had the samples in its own order.
bool keeps_orders(const Grid& grid, int policy);

// One row per policy; without a row where no job has a data set.
Table cached_reads_table(const Grid& grid);

}  // namespace sluice::simulator
