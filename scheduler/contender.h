// A job on its way through the steps of a decision: what it asks for, and what it has been given so far.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/estimator.h"
#include "scheduler/node_table.h"
#include "scheduler/plan.h"
#include "scheduler/snapshot.h"
#include "scheduler/want.h"

namespace sluice::scheduler {

// The CPU of the job's feeders on one node.
struct HostShare {
  int node = kNowhere;
  double part = 1;         // of the job's ranks
  std::int64_t share = 0;  // its GPU-proportional part of the node
  std::int64_t floor = 0;  // what it gets before anybody grows
  std::int64_t most = 0;   // what more than this would not be used for
  std::int64_t held = 0;   // what it requests now
  std::int64_t granted = 0;
};

// Fields in the order in which bidding needs them: it visits ten thousand contenders a hundred times each.
struct Contender {
  const Job* job = nullptr;
  double worth = 1;  // factor of its bids: weight, gang and remaining time, as the objective wants it
  // Supply ratio as a linear function of what is granted: base + per_local l + per_remote r, in cores.
  double supply_base = 0;
  double supply_per_local_core = 0;
  double supply_per_remote_core = 0;
  std::int64_t local_millicores = 0;  // granted, over all hosts
  int workers = 0;                    // granted
  int limit = 0;                      // workers it may reach
  std::int64_t worker_millicores = 0;
  double worker_traffic = 0;  // bytes/s that one worker sends; 0: not known
  int held_workers = 0;       // Job::allocated_workers
  int least_workers = 0;      // Job::min_workers
  int priority = 0;
  int quota = kNowhere;           // index of its quota
  int outside = 0;                // live workers on nodes that take no new ones: they hold no part of the pool
  bool adjustable = false;        // its feeders' CPU is part of this decision
  std::optional<Reason> blocked;  // why it did not get more
  Want want;
  double last_value = 0;         // of the last piece granted
  std::vector<HostShare> hosts;  // as Job::hosts

  int live = 0;                   // workers that are not draining
  int bound = 0;                  // of these, on nodes of the snapshot
  std::vector<int> worker_nodes;  // node of each Job::workers entry
  Belief belief;
  std::optional<Want> advised;  // mode Recommend: what it would want; `want` is to hold what it has

  // Once placed:
  std::vector<const Worker*> kept;
  std::vector<int> new_nodes;  // of workers that do not exist yet
  std::vector<int> occupied;   // of all workers that have a place

  // Workers that nothing justifies taking: what an unconditional want holds now. More than that, for a minimum, is bid
  // for under the same limits as everybody's.
  int assured_workers() const { return want.unconditional ? std::min(limit, held_workers) : 0; }
  double worker_cores() const { return static_cast<double>(worker_millicores) / 1000; }
  double supply(std::int64_t local, int remote_workers) const {
    return supply_base + supply_per_local_core * static_cast<double>(local) / 1000 +
           supply_per_remote_core * remote_workers * worker_cores();
  }
  double supply() const { return supply(local_millicores, workers); }
  double price_per_hour_on(const NodeState& state) const { return worker_cores() * state.price_per_core_hour(); }
};

// So many more of the contender's workers stand on a node; negative: so many fewer.
void occupy(NodeState& state, const Contender& contender, int workers);

// One contender per job, ordered by id, with belief and want; nothing granted yet. Notes on the nodes what stands
// there.
std::vector<Contender> make_contenders(const ClusterSnapshot& snapshot, NodeTable& nodes, const Config& config);

}  // namespace sluice::scheduler
