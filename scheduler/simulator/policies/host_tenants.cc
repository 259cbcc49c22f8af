#include "scheduler/simulator/policies/host_tenants.h"

#include <algorithm>

namespace sluice::scheduler {

std::map<std::string, std::vector<Tenant>> tenants_by_node(const ClusterSnapshot& snapshot, const NodeIndex& nodes) {
  std::map<std::string, std::vector<Tenant>> tenants;
  for (std::size_t j = 0; j < snapshot.jobs.size(); ++j) {
    const Job& job = snapshot.jobs[j];
    if (!job.running || !job.local_adjustable) continue;
    for (std::size_t h = 0; h < job.hosts.size(); ++h) {
      if (nodes.find(job.hosts[h].node) != nullptr) tenants[job.hosts[h].node].push_back({j, h});
    }
  }
  for (auto& [node, here] : tenants) {
    std::stable_sort(here.begin(), here.end(), [&](const Tenant& a, const Tenant& b) {
      return snapshot.jobs[a.job].id < snapshot.jobs[b.job].id;
    });
  }
  return tenants;
}

}  // namespace sluice::scheduler
