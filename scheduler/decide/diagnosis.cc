#include "scheduler/decide/diagnosis.h"

#include <algorithm>

#include "scheduler/decide/wording.h"

namespace sluice::scheduler {
namespace {

// Executors that use less of their CPU than this while the trainer starves are waiting for something else.
constexpr double kCpuUsedUp = 0.5;

// CPU that could have worked during all of the window. Workers that have just become ready must not make a used-up core
// look idle.
double available_cores(const JobAllocation& allocation, const Measurement& m) {
  // Where the plan sets it, the limit is all of the host; only the request is sure to be there.
  const double local = allocation.adjustable ? allocation.estimate->local_held_cores
                                             : static_cast<double>(local_limit_millicores(*allocation.job)) / 1000;
  return local + ready_cores(*allocation.job, m.window_end_seconds - m.window_seconds);
}

// Part of the job's working data workers that stand elsewhere than on the node.
double share_elsewhere(const JobAllocation& allocation, int node) {
  int ready = 0, here = 0;
  for (std::size_t i = 0; i < allocation.worker_nodes.size(); ++i) {
    if (!allocation.job->workers[i].ready) continue;
    ++ready;
    here += allocation.worker_nodes[i] == node ? 1 : 0;
  }
  return ready > 0 ? 1 - static_cast<double>(here) / ready : 1;
}

// The fullest network of the job's hosts: traffic from workers on other nodes over its capacity; 0: not known.
double network_load(const JobAllocation& allocation, const NodeTable& nodes) {
  const std::optional<SourceRate>& remote = allocation.job->observation.measurement->remote;
  if (!remote || !allocation.job->bytes_per_sample) return 0;
  double load = 0;
  for (const HostShare& host : allocation.hosts) {
    if (host.node == kNowhere || !nodes[host.node].node->network_bytes_per_second) continue;
    const double received = remote->samples_per_second * *allocation.job->bytes_per_sample * host.part *
                            share_elsewhere(allocation, host.node);
    load = std::max(load, received / *nodes[host.node].node->network_bytes_per_second);
  }
  return load;
}

Diagnosis diagnose_starved(const JobAllocation& allocation, const NodeTable& nodes, const Config& config) {
  const Measurement& m = *allocation.job->observation.measurement;
  if (!m.local && !m.remote) return {};
  const double available = available_cores(allocation, m);
  if (allocation.estimate->busy_cores >= kCpuUsedUp * available) return {Bottleneck::kDataBoundCpu, available};
  if (const double load = network_load(allocation, nodes); load >= config.network_bound_above)
    return {Bottleneck::kDataBoundNetwork, available, load};
  const double idle = std::max(available - allocation.estimate->busy_cores, 1e-9);
  if (m.blocked_threads && *m.blocked_threads >= config.storage_bound_above * idle)
    return {Bottleneck::kDataBoundStorage, available};
  return {Bottleneck::kDataBoundOther, available};
}

}  // namespace

Diagnosis diagnose(const JobAllocation& allocation, const NodeTable& nodes, const Config& config) {
  if (!allocation.job->running || !allocation.estimate->metrics_problem.empty()) return {};
  if (allocation.estimate->starved) return diagnose_starved(allocation, nodes, config);
  const bool gpu =
      allocation.estimate->sated && allocation.job->observation.measurement->compute_share >= config.gpu_bound_above;
  return {gpu ? Bottleneck::kGpuBound : Bottleneck::kNotDataBound};
}

std::string evidence_of(const Diagnosis& diagnosis, const JobAllocation& allocation) {
  if (!allocation.job->running) return {};
  if (!allocation.estimate->metrics_problem.empty()) return allocation.estimate->metrics_problem;
  const Measurement& m = *allocation.job->observation.measurement;
  Text text;
  text << "waits " << Percent{allocation.estimate->wait_share};
  if (!allocation.estimate->starved) {
    text << ", computes " << Percent{m.compute_share} << " of the time";
  } else if (diagnosis.bottleneck == Bottleneck::kUnknown) {
    text << "; its executors are not measured";
  } else {
    text << "; " << Number{allocation.estimate->busy_cores} << " of " << Number{diagnosis.available_cores}
         << " cores at work";
    if (diagnosis.bottleneck == Bottleneck::kDataBoundNetwork)
      text << "; a host's network is " << Percent{diagnosis.network_load} << " full";
    if (diagnosis.bottleneck == Bottleneck::kDataBoundStorage)
      text << "; " << Number{*m.blocked_threads} << " threads blocked in reads";
  }
  return text.take();
}

std::string_view remedy_of(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kDataBoundStorage:
      return "a cache on its nodes (`cache.enabled` in the chart's values), a copy of the data nearby, or faster "
             "storage";
    case Bottleneck::kDataBoundNetwork: return "more hosts for the job or nodes for its workers, or a faster network";
    default: return {};
  }
}

}  // namespace sluice::scheduler
