// The bytes that jobs read from storages, while growth decides how much CPU each job gets.
//
//   reads at a supply ratio x    full_reads * min(1, x)
//   full_reads                   what it reads from the storage when its trainer never waits
// So a job is as fast as the less of CPU and storage allows: min(compute, I/O / (1 - hit)), the closed form of SiloD
// (EuroSys 2023). What caches serve is no part of full_reads.
//
// Every job first has the reads that the CPU of its floor can make, as the storage itself would share them (max-min).
// Growth gets what is left, and a part of the bandwidth beyond it (Config::storage_overbooking). CPU that reads more
// than that would take the reads from neighbours, or find none: a job gets none of it.
//
// The part beyond comes from those that read most. Without it a storage that floors fill serves a job of few bytes as
// late as all others. Simulated, where such a storage was full (scenario T1, eight seeds):
//   overbooking                              0     .05    .10    .15    .20    .30   no bound at all
//   mean completion time, hpa's over ours    .956  .993  1.013  1.031  1.040  1.037  1.023
//   jobs slower than their static share     1.6 %  2.4 %  2.8 %  3.3 %  5.5 %  8.8 %  15.9 %
//
// A job that names no storage of the snapshot, or whose reads were never measured, takes no part.
//
// Thread safety: none.
#pragma once

#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/model/config.h"

namespace sluice::scheduler {

class StorageReads {
 public:
  // Lifetime: refers to the storages.
  StorageReads(const std::vector<Storage>& storages, const Config& config);

  // The reads of a job that does not bid here.
  void hold(const JobAllocation& other);

  // Gives every job the reads of the CPU that it has, as far as there are so many. REQUIRES: called once, before
  // reach()
  void share(std::vector<JobAllocation>& allocations);

  // The supply ratio up to which the job finds reads for its CPU. REQUIRES: a storage bounds it
  double reach(const JobAllocation& allocation) const;

  // The job's CPU is another one now.
  void update(JobAllocation& allocation) {
    if (allocation.storage != kNowhere) count(allocation);
  }

 private:
  void count(JobAllocation& allocation);

  const std::vector<Storage>& storages_;
  const double overbooking_;
  std::vector<double> left_bytes_per_second_;  // of each storage
};

}  // namespace sluice::scheduler
