#include "scheduler/simulator/report/cached_reads.h"

#include <algorithm>

#include "scheduler/simulator/report/report.h"

namespace sluice::simulator {

std::vector<std::string> cache_rivals(const Scenario& scenario) {
  if (scenario.cluster.data_sets.empty() || scenario.cluster.cache.gigabytes <= 0) return {};
  std::vector<std::string> names;
  names.reserve(kRivalCaches.size());
  for (const CacheRule rule : kRivalCaches) names.push_back("sluice+" + std::string(name_of(rule)));
  return names;
}

DataReads all_reads(const RunRecord& run) {
  DataReads sum;
  for (const JobRecord& job : run.jobs) {
    sum.gigabytes += job.reads.gigabytes;
    sum.fetched_gigabytes += job.reads.fetched_gigabytes;
  }
  return sum;
}

std::vector<double> fetches_per_sample(const Grid& grid, int policy) {
  std::vector<double> by_seed;
  for (const RunRecord& run : grid.runs[policy]) {
    const DataReads reads = all_reads(run);
    by_seed.push_back(reads.fetched_gigabytes / reads.gigabytes);
  }
  return by_seed;
}

bool keeps_orders(const Grid& grid, int policy) {
  return std::all_of(grid.runs[policy].begin(), grid.runs[policy].end(),
                     [](const RunRecord& run) { return run.keeps_orders; });
}

Table cached_reads_table(const Grid& grid) {
  Table table({"policy", "cache", "fetches per sample", "GB from the storage", "GB read", "order of samples"});
  for (int policy = 0; policy < static_cast<int>(grid.policies.size()); ++policy) {
    DataReads mean;
    const auto seeds = static_cast<double>(grid.runs[policy].size());
    for (const RunRecord& run : grid.runs[policy]) {
      const DataReads reads = all_reads(run);
      mean.gigabytes += reads.gigabytes / seeds;
      mean.fetched_gigabytes += reads.fetched_gigabytes / seeds;
    }
    if (mean.gigabytes <= 0) continue;
    table.add({grid.policies[policy], std::string(name_of(grid.runs[policy][0].cache)),
               fixed(mean_interval(fetches_per_sample(grid, policy)).value, 3), fixed(mean.fetched_gigabytes, 0),
               fixed(mean.gigabytes, 0), keeps_orders(grid, policy) ? "kept" : "changed"});
  }
  return table;
}

}  // namespace sluice::simulator
