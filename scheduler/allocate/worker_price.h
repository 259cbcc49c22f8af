// Objective cost: whether more data workers make a job's samples cheaper.
//
//   G     what an hour of the job's trainers costs     r     cores of its data workers, each of which costs 1
//   price of a sample = (G + r) / f(x), so c more cores pay if (G + r) (f(x + c dx/dr) - f(x)) > c f(x)
//
// G is counted in hours of a worker's core: by the prices of the nodes if those of its hosts and of nodes for workers
// are known, else Config::core_hours_per_gpu_hour for each GPU. The hosts' own cores are part of the hosts' price.
//
// Source of the criterion: Pecan (USENIX ATC'24), section 5.1, the cost of a batch.
//
// Thread safety: const methods.
#pragma once

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"
#include "scheduler/model/config.h"

namespace sluice::scheduler {

class WorkerPrice {
 public:
  // Lifetime: refers to both.
  WorkerPrice(const NodeTable& nodes, const Config& config);

  // How many of so many more workers, or of those held next, pay at the supply ratio x. Held ones count a little more.
  int paying(const JobAllocation& allocation, double x, int workers) const;

 private:
  double trainers_core_hours(const JobAllocation& allocation) const;

  const NodeTable& nodes_;
  const Config& config_;
  double core_price_ = 0;  // where workers go first: nodes without GPUs, the cheapest; 0: not known
};

}  // namespace sluice::scheduler
