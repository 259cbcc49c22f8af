// A job on its way through the steps of a decision: its estimate, its target, and its grants so far.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/allocate/node_table.h"
#include "scheduler/allocate/spread.h"
#include "scheduler/allocate/target.h"
#include "scheduler/estimate/estimator.h"
#include "scheduler/model/config.h"
#include "scheduler/model/plan.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

struct JobAllocation;

constexpr std::int64_t kUncapped = std::numeric_limits<std::int64_t>::max();

// The CPU of the job's feeders on one node.
struct HostShare {
  int node = kNowhere;
  int ranks = 1;           // of the job, here
  int gpus = 0;            // of the job, here
  double part = 1;         // of the job's ranks
  std::int64_t share = 0;  // its GPU-proportional part of the node
  std::int64_t floor = 0;  // its CPU before any job grows
  std::int64_t most = 0;   // CPU beyond this would not be used
  std::int64_t held = 0;   // its present request
  std::int64_t granted = 0;
  int own_workers = 0;                     // granted, and counted as standing here; host_network.h
  std::int64_t cap = kUncapped;            // of floor, most and limit, for the sake of any trainer
  const JobAllocation* guarded = nullptr;  // whose trainer the cap guards, where that is of another job
  bool keeps_to_share = false;             // as feeders beyond it harm trainers, or to see whether they do
};

// Fields are in the order in which bidding needs them: it visits ten thousand allocations a hundred times each.
struct JobAllocation {
  const Job* job = nullptr;
  double worth = 1;  // factor of its bids: weight, gang and remaining time, by the objective
  // Supply ratio as a linear function of the grants: base + per_local l + per_remote r, in cores.
  double supply_base = 0;
  double supply_per_local_core = 0;
  double supply_per_remote_core = 0;
  std::int64_t local_millicores = 0;  // granted, over all hosts
  int workers = 0;                    // granted
  int limit = 0;                      // workers it may reach
  std::int64_t worker_millicores = 0;
  double worker_traffic = 0;  // bytes/s that one worker sends; 0: not known
  int elsewhere_workers = 0;  // granted, and counted into the network of every host; host_network.h
  int held_workers = 0;       // Job::allocated_workers
  int least_workers = 0;      // Job::min_workers
  int priority = 0;
  int quota = kNowhere;           // index of its quota
  int storage = kNowhere;         // index of the storage that bounds it; storage_reads.h
  int outside = 0;                // live workers on nodes that take no new ones: they hold no part of the pool
  GroupSet groups = 0;            // of nodes that take its new workers
  bool adjustable = false;        // its feeders' CPU is part of this decision
  bool ends_soon = false;         // before a new worker would pay
  std::optional<Reason> blocked;  // why it did not get more
  bool by_quotas_budget = false;  // once placed, and blocked is kBudget: by the budget of its quota
  Target target;
  double last_value = 0;         // of the last piece granted
  std::vector<HostShare> hosts;  // as Job::hosts

  double full_reads = 0;          // bytes/s that it reads from its storage when its trainer never waits
  double reads = 0;               // of these, what the storage has for it
  int live = 0;                   // workers that are not draining
  int bound = 0;                  // of these, on nodes of the snapshot
  std::vector<int> worker_nodes;  // node of each Job::workers entry
  std::vector<int> near_data;     // nodes that have its data in their caches, in their order
  Estimate* estimate = nullptr;   // in its plan
  std::optional<Target> advised;  // mode Recommend: the target in mode Auto; `target` holds its present workers

  // Once placed:
  std::vector<const Worker*> kept;
  std::vector<int> new_nodes;  // of workers that do not exist yet
  std::vector<int> occupied;   // of all workers that have a place
  Spread spread;               // of these

  // Workers that no other job can take: those that a held target has now. Workers of a minimum beyond them are bid for,
  // under the same limits as all growth.
  int assured_workers() const { return target.is_held() ? std::min(limit, held_workers) : 0; }
  bool any_drains() const { return live < std::ssize(worker_nodes); }
  double worker_cores() const { return static_cast<double>(worker_millicores) / 1000; }
  double supply(std::int64_t local, int remote_workers) const {
    return supply_base + supply_per_local_core * static_cast<double>(local) / 1000 +
           supply_per_remote_core * remote_workers * worker_cores();
  }
  double supply() const { return supply(local_millicores, workers); }
  // Part of its ranks on a node: the samples that a worker there sends them cross no network.
  double part_on(int node) const {
    double part = 0;
    for (const HostShare& host : hosts) part += host.node == node ? host.part : 0;
    return std::min(part, 1.0);
  }
  double price_per_hour_on(const NodeState& state) const { return worker_cores() * state.price_per_core_hour; }
};

// takes_new_workers() of the snapshot, without a look at it where the job's groups tell.
inline bool takes_new(const NodeState& state, const JobAllocation& allocation) {
  if (state.bit == kGroups - 1) return takes_new_workers(*state.node, *allocation.job);
  return state.schedulable && (allocation.groups & only(state.bit)) != 0;
}

// Books so many more of the job's workers on a node; negative: so many fewer.
void occupy(std::span<NodeState> states, int node, const JobAllocation& allocation, int workers);

// Whether the networks carry the traffic of one more worker on `node`. sends(): out of the node. receives(): into the
// job's other hosts (kNowhere: into all of them).
bool sends(std::span<const NodeState> states, int node, const JobAllocation& allocation);
bool receives(std::span<const NodeState> states, int node, const JobAllocation& allocation);

// One allocation per job, ordered by id, with estimate and target; nothing is granted yet. Notes on each node the CPU
// of the live workers there. `plans` get one entry per job, with id and estimate: an estimate has a thousand bytes, and
// moves no more. Lifetime: refers to the snapshot and the plans. REQUIRES: there are no plans yet
std::vector<JobAllocation> make_allocations(const ClusterSnapshot& snapshot, NodeTable& nodes, const Config& config,
                                            std::vector<JobPlan>& plans);

}  // namespace sluice::scheduler
