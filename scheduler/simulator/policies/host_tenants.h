// The trainers on each host: for policies that divide a host's CPU between them.
//
// Thread safety: pure functions on values.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "scheduler/model/snapshot.h"
#include "scheduler/simulator/policies/requests.h"

namespace sluice::scheduler {

// Job::hosts[host] of snapshot.jobs[job].
struct Tenant {
  std::size_t job = 0;
  std::size_t host = 0;
};

// Running jobs whose feeders' CPU the plan sets, by name of their node, those of one node in order of job id. Hosts
// that the snapshot does not know are left out.
std::map<std::string, std::vector<Tenant>> tenants_by_node(const ClusterSnapshot& snapshot, const NodeIndex& nodes);

}  // namespace sluice::scheduler
