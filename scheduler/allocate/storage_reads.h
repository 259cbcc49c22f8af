// The bytes that jobs read from storages, while growth decides how much CPU each job gets.
//
//   reads at a supply ratio x    full_reads * min(1, x)
//   full_reads                   what it reads from the storage when its trainer never waits
// So a job is as fast as the less of CPU and storage allows: min(compute, I/O / (1 - hit)), the closed form of SiloD
// (EuroSys 2023). What caches serve is no part of full_reads.
//
// Every job first has the reads that the CPU of its floor can make, as the storage itself would share them (max-min).
// Only what is left serves growth. CPU beyond that would take reads from a neighbour, or find none: a job gets none of
// it. In a simulated cluster whose storage was full, such CPU slowed every sixth job down below its static share.
//
// A job that names no storage of the snapshot, or whose reads were never measured, takes no part.
//
// Thread safety: none.
#pragma once

#include <limits>
#include <vector>

#include "scheduler/allocate/job_allocation.h"

namespace sluice::scheduler {

class StorageReads {
 public:
  explicit StorageReads(const std::vector<Storage>& storages);

  // The reads of a job that does not bid here.
  void hold(const JobAllocation& other);

  // Gives every job the reads of the CPU that it has, as far as there are so many. REQUIRES: called once, before
  // reach()
  void share(std::vector<JobAllocation>& allocations);

  // The supply ratio up to which the job finds reads for its CPU.
  double reach(const JobAllocation& allocation) const {
    return allocation.storage == kNowhere ? kUnlimited : bounded_reach(allocation);
  }

  // The job's CPU is another one now.
  void update(JobAllocation& allocation) {
    if (allocation.storage != kNowhere) count(allocation);
  }

 private:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  double bounded_reach(const JobAllocation& allocation) const;
  void count(JobAllocation& allocation);

  std::vector<double> left_bytes_per_second_;  // of each storage
};

}  // namespace sluice::scheduler
