#include "scheduler/diagnosis.h"

#include <algorithm>

#include "scheduler/wording.h"

namespace sluice::scheduler {
namespace {

// Executors that use less of their CPU than this while the trainer starves are waiting for something else.
constexpr double kCpuUsedUp = 0.5;

// CPU that could have worked during all of the window. Workers that have just become ready must not make a used-up core
// look idle.
double available_cores(const Contender& c, const Measurement& m) {
  // Where the plan sets it, the limit is all of the host; only the request is sure to be there.
  const double local =
      c.adjustable ? c.belief.local_held_cores : static_cast<double>(local_limit_millicores(*c.job)) / 1000;
  return local + ready_cores(*c.job, m.window_end_seconds - m.window_seconds);
}

// The fullest network of the job's hosts: what remote workers send there over what it carries; 0 when not known.
double network_load(const Contender& c, const NodeTable& nodes) {
  const std::optional<SourceRate>& remote = c.job->observation.measurement->remote;
  if (!remote || !c.job->bytes_per_sample) return 0;
  double load = 0;
  for (const TrainerHost& host : c.job->hosts) {
    const int node = nodes.index_of(host.node);
    if (node == kNowhere || !nodes[node].node->network_bytes_per_second) continue;
    const double part = static_cast<double>(host.ranks) / std::max(c.job->ranks, 1);
    load = std::max(load, remote->samples_per_second * *c.job->bytes_per_sample * part /
                              *nodes[node].node->network_bytes_per_second);
  }
  return load;
}

Diagnosis diagnose_starved(const Contender& c, const NodeTable& nodes, const Config& config) {
  const Measurement& m = *c.job->observation.measurement;
  Text evidence;
  evidence << "waits " << Percent{c.belief.wait_share};
  if (!m.local && !m.remote) return {Bottleneck::kUnknown, (evidence << "; its executors are not measured").take()};
  const double available = available_cores(c, m);
  evidence << "; " << Number{c.belief.busy_cores} << " of " << Number{available} << " cores at work";
  if (c.belief.busy_cores >= kCpuUsedUp * available) return {Bottleneck::kDataBoundCpu, evidence.take()};
  if (const double load = network_load(c, nodes); load >= config.network_bound_above)
    return {Bottleneck::kDataBoundNetwork, (evidence << "; a host's network is " << Percent{load} << " full").take()};
  const double idle = std::max(available - c.belief.busy_cores, 1e-9);
  if (m.reading_threads && *m.reading_threads >= config.storage_bound_above * idle)
    return {Bottleneck::kDataBoundStorage,
            (evidence << "; " << Number{*m.reading_threads} << " threads blocked in reads").take()};
  return {Bottleneck::kDataBoundOther, evidence.take()};
}

}  // namespace

Diagnosis diagnose(const Contender& c, const NodeTable& nodes, const Config& config) {
  if (!c.job->running) return {};
  if (!c.belief.metrics_problem.empty()) return {Bottleneck::kUnknown, c.belief.metrics_problem};
  if (c.belief.starved) return diagnose_starved(c, nodes, config);
  const Measurement& m = *c.job->observation.measurement;
  const double training = m.compute_share;
  Text evidence;
  evidence << "waits " << Percent{c.belief.wait_share} << ", computes " << Percent{training} << " of the time";
  const bool gpu = c.belief.sated && training >= config.gpu_bound_above;
  return {gpu ? Bottleneck::kGpuBound : Bottleneck::kNotDataBound, evidence.take()};
}

}  // namespace sluice::scheduler
