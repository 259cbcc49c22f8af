// Step 3 of decide(): who gets the cluster's CPU, one worker at a time, and on which node there is room for it.
//
// Every job bids for its next worker; the highest bid is served; the job bids again, lower (progress is concave), until
// it has what it wants or no node has room. Bids are ordered by
//   tier      1. existing workers of unconditional claims, 2. workers up to a job's minimum, 3. growth
//   priority  within a tier, strictly
//   value     weight sqrt(g) (df / core) / sqrt(remaining hours), +10 % for workers that exist already (hysteresis)
//   id        so that the outcome does not depend on the order of the input
// A worker that exists is kept on its node. A new one goes to spare room, else it displaces the least valuable existing
// worker whose bid is lower; a job that loses a worker this way does not get a new one elsewhere in the same decision.
//
// Source of the value function: docs/scheduling.md, section "Whose worker first".
#pragma once

#include <string>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/estimator.h"
#include "scheduler/room.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

struct Claim {
  const Job* job = nullptr;
  const Belief* belief = nullptr;
  int wanted = 0;
  bool unconditional = false;
};

struct Grant {
  int workers = 0;                            // that have room; <= Claim::wanted
  std::vector<std::string> victims;           // live workers without a place, first to go first
  std::vector<std::string> new_worker_nodes;  // for workers that do not exist yet
  std::vector<std::string> occupied_nodes;    // of all `workers`, in the order of granting
  bool out_of_room = false;                   // fewer than wanted, because no node had room
};

// The live workers of a job, the one to keep longest first: ready before starting before unbound, older before younger.
std::vector<const Worker*> in_order_of_keeping(const Job& job);

// Grants in the order of the claims; takes the room.  REQUIRES: claims ordered by job id
std::vector<Grant> allocate(const std::vector<Claim>& claims, Room& room, const Config& config);

}  // namespace sluice::scheduler
