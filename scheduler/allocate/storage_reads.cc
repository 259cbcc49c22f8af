#include "scheduler/allocate/storage_reads.h"

#include <algorithm>
#include <limits>

#include "scheduler/model/fair_shares.h"

namespace sluice::scheduler {
namespace {

constexpr double kRounding = 1e-9;  // of a job's reads: what is missing by less is there

double reads_of_cpu(const JobAllocation& allocation) {
  return allocation.full_reads * std::clamp(allocation.supply(), 0.0, 1.0);
}

}  // namespace

StorageReads::StorageReads(const std::vector<Storage>& storages, const Config& config)
    : storages_(storages), overbooking_(config.storage_overbooking) {
  left_bytes_per_second_.reserve(storages.size());
  for (const Storage& storage : storages) left_bytes_per_second_.push_back(storage.bytes_per_second);
}

void StorageReads::hold(const JobAllocation& other) {
  if (other.storage != kNowhere) left_bytes_per_second_[other.storage] -= other.reads;
}

void StorageReads::share(std::vector<JobAllocation>& allocations) {
  struct Readers {
    std::vector<JobAllocation*> jobs;
    std::vector<double> needs;
  };
  std::vector<Readers> by_storage(left_bytes_per_second_.size());
  for (JobAllocation& allocation : allocations) {
    if (allocation.storage == kNowhere) continue;
    Readers& readers = by_storage[allocation.storage];
    readers.jobs.push_back(&allocation);
    readers.needs.push_back(reads_of_cpu(allocation));
  }
  for (std::size_t storage = 0; storage < by_storage.size(); ++storage) {
    const Readers& readers = by_storage[storage];
    const std::vector<double> shares = fair_shares(readers.needs, std::max(left_bytes_per_second_[storage], 0.0));
    for (std::size_t i = 0; i < shares.size(); ++i) {
      readers.jobs[i]->reads = shares[i];
      hold(*readers.jobs[i]);
    }
    left_bytes_per_second_[storage] += overbooking_ * storages_[storage].bytes_per_second;
  }
}

double StorageReads::reach(const JobAllocation& allocation) const {
  const double most = allocation.reads + left_bytes_per_second_[allocation.storage];
  return most >= allocation.full_reads * (1 - kRounding) ? std::numeric_limits<double>::infinity()
                                                         : most / allocation.full_reads;
}

void StorageReads::count(JobAllocation& allocation) {
  double& left = left_bytes_per_second_[allocation.storage];
  const double most = allocation.reads + left;
  allocation.reads = std::min(reads_of_cpu(allocation), most);
  left = most - allocation.reads;
}

}  // namespace sluice::scheduler
