// A job on its way through the steps of a decision: what it asks for, and what it has been given so far.
//
// Thread safety: none.
#pragma once

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
  std::int64_t granted = 0;
};

struct Contender {
  const Job* job = nullptr;
  Belief belief;
  Want want;
  std::optional<Want> advised;  // mode Recommend: what it would want; `want` is to hold what it has

  // Supply ratio as a linear function of what is granted: base + per_local l + per_remote r, in cores.
  double supply_base = 0;
  double supply_per_local_core = 0;
  double supply_per_remote_core = 0;
  double worth = 1;  // factor of its bids: weight, gang and remaining time, as the objective wants it

  bool adjustable = false;            // its feeders' CPU is part of this decision
  std::vector<HostShare> hosts;       // as Job::hosts; empty unless Job::local_adjustable
  std::int64_t local_millicores = 0;  // granted, over all hosts

  std::vector<int> worker_nodes;  // node of each Job::workers entry
  int live = 0;                   // workers that are not draining
  int bound = 0;                  // live workers on nodes of the snapshot
  int outside = 0;                // of these, on nodes that take no new ones: they hold no part of the pool
  int limit = 0;                  // workers it may reach
  int quota = kNowhere;           // index of its quota

  int workers = 0;                // granted
  double last_value = 0;          // of the last piece granted
  std::optional<Reason> blocked;  // why it did not get more
  // Once placed:
  std::vector<const Worker*> kept;
  std::vector<int> new_nodes;  // of workers that do not exist yet
  std::vector<int> occupied;   // of all workers that have a place

  double worker_cores() const { return static_cast<double>(job->worker_millicores) / 1000; }
  double supply(std::int64_t local, int remote_workers) const {
    return supply_base + supply_per_local_core * static_cast<double>(local) / 1000 +
           supply_per_remote_core * remote_workers * worker_cores();
  }
  double supply() const { return supply(local_millicores, workers); }
};

// One contender per job, ordered by id, with belief and want; nothing granted yet. Notes on the nodes what stands
// there.
std::vector<Contender> make_contenders(const ClusterSnapshot& snapshot, NodeTable& nodes, const Config& config);

}  // namespace sluice::scheduler
