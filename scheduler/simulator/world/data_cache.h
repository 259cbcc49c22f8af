// The reads of jobs that have a data set: what the cache serves, and what reaches the storage.
//
// A data set is kChunks chunks of the same size. In each epoch a job reads all of them once, in a new order, which
// follows from the seed, the job and the epoch. It reads ahead by blocks, kBlocks an epoch: at the beginning of a block
// its chunks are asked of the cache, one after the other. So the share of a block that reaches the storage is known
// before the block takes its time, and the storage delivers just that. Jobs meet in the cache at their own positions,
// to the fiftieth part of an epoch.
//
// The rules are those of src/cache/policies, the same that the cache's own tests compare; kReuseDistance is the code of
// the daemon. What a substituting rule fetches in the background counts for the job that caused it. Such a rule has a
// room of its own for each data set: the data set that has most epochs over all jobs gets as much as it can use, then
// the next. That is more than its original knows.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/simulator/world/cluster.h"
#include "scheduler/simulator/world/workload.h"
#include "src/cache/policies/cache_policy.h"

namespace sluice::simulator {

struct DataReads {
  double gigabytes = 0;          // that jobs have read
  double fetched_gigabytes = 0;  // that reached the storage
};

class DataCache {
 public:
  static constexpr int kChunks = 3000;
  static constexpr int kBlocks = 50;

  // REQUIRES: `cluster` and `workload` outlive it.
  DataCache(const Cluster& cluster, const Workload& workload, std::uint64_t seed);

  // The share of the job's block, counted from its first epoch on, that reaches the storage; above 1 where background
  // fetches add to it. REQUIRES: the job has a data set. It need not have read the block before.
  double read(int job, int block);

  // The job has ended, or lost its trainer.
  void leave(int job);

  const DataReads& reads(int job) const { return readers_[job].reads; }
  bool keeps_orders() const { return keeps_orders_; }

 private:
  struct Reader {
    int next_block = -1;  // that follows without a gap
    std::vector<std::uint32_t> order;
    DataReads reads;
  };

  // Where a data set's chunks are cached: `first` is its first one's number there.
  struct Place {
    std::size_t policy = 0;
    std::uint32_t first = 0;
  };

  void make_common_cache();
  void make_caches_by_data_set();
  std::vector<std::uint32_t> order_of(int job, int epoch) const;

  const Cluster& cluster_;
  const Workload& workload_;
  const std::uint64_t seed_;
  std::vector<cache::MadeCachePolicy> policies_;
  std::vector<Place> places_;    // of each data set
  std::vector<Reader> readers_;  // of each job
  bool keeps_orders_ = true;
};

}  // namespace sluice::simulator
