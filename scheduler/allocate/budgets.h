// What data workers may still cost per hour: all of them together, and those of each quota.
//
// Thread safety: none.
#pragma once

#include <vector>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// What other workers would give back per hour if they made way for a job's.
struct Refund {
  double all = 0;
  double of_its_quota = 0;  // the part of it from workers that count against the same quota
};

class Budgets {
 public:
  // Nothing is spent yet.
  explicit Budgets(const ClusterSnapshot& snapshot);

  // Whether a budget counts the job's workers.
  bool bound(const JobAllocation& allocation) const;

  // For another worker of the job; infinite where no budget counts it.
  double left_for(const JobAllocation& allocation, const Refund& refund = {}) const;

  // Whether the budget of its quota leaves the job less than the budget of all workers does.
  bool quota_is_tighter(const JobAllocation& allocation) const;

  // Negative: gives back.
  void spend(const JobAllocation& allocation, double price_per_hour);

 private:
  double of_all_;
  std::vector<double> of_quotas_;  // in the order of the snapshot
};

}  // namespace sluice::scheduler
