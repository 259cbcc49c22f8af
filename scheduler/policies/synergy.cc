#include "scheduler/policies/synergy.h"

#include <algorithm>

#include "scheduler/estimator.h"
#include "scheduler/policies/host_tenants.h"
#include "scheduler/policies/reading.h"
#include "scheduler/policies/synergy_tune.h"

namespace sluice::scheduler {
namespace {

// The profile's demand on one host: whole cores.
std::int64_t demand_millicores(const Job& job, const TrainerHost& host, const Belief& belief, const Config& config) {
  const double part = static_cast<double>(host.gpus) / std::max(1, job.gpus);
  return std::int64_t{1000} * whole_count(config.headroom * belief.knee_cores * part);
}

}  // namespace

Plan SynergyPolicy::decide(const ClusterSnapshot& snapshot) {
  const NodeIndex nodes(snapshot.nodes);
  std::vector<Belief> beliefs;
  std::vector<Wish> wishes;
  for (const Job& job : snapshot.jobs) {
    beliefs.push_back(estimate(job, snapshot.taken_at_seconds, config_));
    wishes.push_back({.local = gpu_proportional(job, nodes), .memory = beliefs.back().memory});
  }
  for (const auto& [name, tenants] : tenants_by_node(snapshot, nodes)) {
    std::vector<SynergyJob> jobs;
    for (const Tenant& tenant : tenants) {
      const Job& job = snapshot.jobs[tenant.job];
      const TrainerHost& host = job.hosts[tenant.host];
      const Belief& belief = beliefs[tenant.job];
      const std::int64_t share = nodes.share_millicores(host);
      jobs.push_back({host.gpus, belief.known ? demand_millicores(job, host, belief, config_) : share, share});
    }
    const std::vector<std::int64_t> given = synergy_tune(jobs, NodeIndex::usable_millicores(*nodes.find(name)));
    for (std::size_t i = 0; i < tenants.size(); ++i) {
      LocalCpu& local = (*wishes[tenants[i].job].local)[tenants[i].host];
      local.request_millicores = local.limit_millicores = given[i];
    }
  }
  return fulfil(snapshot, wishes, Turns::kOneEach);
}

}  // namespace sluice::scheduler
