#include "scheduler/simulator/policies/knee_proportional.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "scheduler/estimate/estimator.h"
#include "scheduler/simulator/policies/host_tenants.h"

namespace sluice::scheduler {
namespace {

constexpr double kMostCores = 1e9;  // of one job; keeps millicores a number for absurd measurements

// The CPU that the factor multiplies, and the room that it must fit into.
class Division {
 public:
  Division(const ClusterSnapshot& snapshot, const NodeIndex& nodes, const Config& config)
      : snapshot_(snapshot), nodes_(nodes), tenants_(tenants_by_node(snapshot, nodes)) {
    for (const Job& job : snapshot.jobs) {
      estimates.push_back(estimate_of(job, snapshot.taken_at_seconds, config));
      const Estimate& estimate = estimates.back();
      need_cores_.push_back(job.running && estimate.known ? std::min(config.headroom * estimate.knee_cores, kMostCores)
                                                          : 0);
    }
  }

  // Sets `requests` for a factor. Returns whether the data workers it takes have room.
  bool divide(double factor, std::vector<Request>& requests) const {
    std::int64_t room = 0;
    for (const Node& node : snapshot_.nodes) {
      const std::int64_t left = NodeIndex::usable_millicores(node) - divide_node(node, factor, requests);
      if (node.schedulable) room += std::max<std::int64_t>(0, left);
    }
    std::int64_t taken = 0;
    for (std::size_t j = 0; j < requests.size(); ++j) {
      requests[j].workers = remote_workers(j, factor, requests[j]);
      taken += requests[j].workers * snapshot_.jobs[j].worker_millicores;
    }
    return taken <= room;
  }

  std::vector<Estimate> estimates;  // in the order of snapshot.jobs

 private:
  double host_need(const Tenant& tenant, double factor) const {
    const Job& job = snapshot_.jobs[tenant.job];
    return 1000 * factor * need_cores_[tenant.job] * job.hosts[tenant.host].gpus / std::max(1, job.gpus);
  }

  // Each trainer gets its need up to its share. The rest of the node goes in proportion to the missing CPU. Returns
  // what the trainers take together.
  std::int64_t divide_node(const Node& node, double factor, std::vector<Request>& requests) const {
    const auto found = tenants_.find(node.name);
    if (found == tenants_.end()) return 0;
    std::vector<double> missing;
    double missing_sum = 0;
    std::int64_t taken = 0;
    for (const Tenant& tenant : found->second) {
      const std::int64_t share = nodes_.share_millicores(snapshot_.jobs[tenant.job].hosts[tenant.host]);
      const bool known = estimates[tenant.job].known;
      const double need = known ? host_need(tenant, factor) : static_cast<double>(share);
      LocalCpu& local = local_of(tenant, requests);
      local.request_millicores = std::min(share, static_cast<std::int64_t>(std::ceil(need)));
      taken += local.request_millicores;
      missing.push_back(std::max(0.0, need - static_cast<double>(local.request_millicores)));
      missing_sum += missing.back();
    }
    const auto spare = static_cast<double>(std::max<std::int64_t>(0, NodeIndex::usable_millicores(node) - taken));
    for (std::size_t i = 0; i < missing.size(); ++i) {
      LocalCpu& local = local_of(found->second[i], requests);
      const double more = missing_sum <= 0 ? 0 : missing[i] * std::min(1.0, spare / missing_sum);
      local.request_millicores += static_cast<std::int64_t>(more);
      local.limit_millicores = local.request_millicores;
      taken += static_cast<std::int64_t>(more);
    }
    return taken;
  }

  static LocalCpu& local_of(const Tenant& tenant, std::vector<Request>& requests) {
    return (*requests[tenant.job].local)[tenant.host];
  }

  int remote_workers(std::size_t j, double factor, const Request& request) const {
    if (need_cores_[j] <= 0) return snapshot_.jobs[j].allocated_workers;
    std::int64_t local = 0;
    for (const LocalCpu& cpu : *request.local) local += cpu.request_millicores;
    const double missing = factor * need_cores_[j] - static_cast<double>(local) / 1000;
    return whole_workers(std::max(0.0, missing) / estimates[j].efficiency(), snapshot_.jobs[j]);
  }

  const ClusterSnapshot& snapshot_;
  const NodeIndex& nodes_;
  const std::map<std::string, std::vector<Tenant>> tenants_;
  std::vector<double> need_cores_;  // with headroom; 0: not known
};

}  // namespace

Plan KneeProportionalPolicy::decide(const ClusterSnapshot& snapshot) {
  const NodeIndex nodes(snapshot.nodes);
  const Division division(snapshot, nodes, config_);
  std::vector<Request> requests;
  for (std::size_t j = 0; j < snapshot.jobs.size(); ++j) {
    requests.push_back({.local = gpu_proportional(snapshot.jobs[j], nodes), .estimate = division.estimates[j]});
  }

  // The largest factor at which everything fits, to a thousandth.
  double fits = 1;
  if (!division.divide(fits, requests)) {
    fits = 0;
    for (double step = 0.5; step > 0.001; step /= 2) {
      if (division.divide(fits + step, requests)) fits += step;
    }
    division.divide(fits, requests);
  }
  return grant(snapshot, requests, Turns::kOneEach);
}

}  // namespace sluice::scheduler
