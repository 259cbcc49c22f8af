#include "scheduler/simulator/policies/synergy.h"

#include <algorithm>

#include "scheduler/estimate/estimator.h"
#include "scheduler/simulator/policies/host_tenants.h"
#include "scheduler/simulator/policies/reading.h"
#include "scheduler/simulator/policies/synergy_tune.h"

namespace sluice::scheduler {
namespace {

// The profile's demand on one host: whole cores.
std::int64_t demand_millicores(const Job& job, const TrainerHost& host, const Estimate& estimate,
                               const Config& config) {
  const double part = static_cast<double>(host.gpus) / std::max(1, job.gpus);
  return std::int64_t{1000} * whole_count(config.headroom * estimate.knee_cores * part);
}

}  // namespace

Plan SynergyPolicy::decide(const ClusterSnapshot& snapshot) {
  const NodeIndex nodes(snapshot.nodes);
  std::vector<Estimate> estimates;
  std::vector<Request> requests;
  for (const Job& job : snapshot.jobs) {
    estimates.push_back(estimate_of(job, snapshot.taken_at_seconds, config_));
    requests.push_back({.local = gpu_proportional(job, nodes), .estimate = estimates.back()});
  }
  for (const auto& [name, tenants] : tenants_by_node(snapshot, nodes)) {
    std::vector<SynergyJob> jobs;
    for (const Tenant& tenant : tenants) {
      const Job& job = snapshot.jobs[tenant.job];
      const TrainerHost& host = job.hosts[tenant.host];
      const Estimate& estimate = estimates[tenant.job];
      const std::int64_t share = nodes.share_millicores(host);
      jobs.push_back({host.gpus, estimate.known ? demand_millicores(job, host, estimate, config_) : share, share});
    }
    const std::vector<std::int64_t> given = synergy_tune(jobs, NodeIndex::usable_millicores(*nodes.find(name)));
    for (std::size_t i = 0; i < tenants.size(); ++i) {
      LocalCpu& local = (*requests[tenants[i].job].local)[tenants[i].host];
      local.request_millicores = local.limit_millicores = given[i];
    }
  }
  return grant(snapshot, requests, Turns::kOneEach);
}

}  // namespace sluice::scheduler
