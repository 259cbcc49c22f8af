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
  for (const HostShare& host : c.hosts) {
    if (host.node == kNowhere || !nodes[host.node].node->network_bytes_per_second) continue;
    load = std::max(load, remote->samples_per_second * *c.job->bytes_per_sample * host.part /
                              *nodes[host.node].node->network_bytes_per_second);
  }
  return load;
}

Diagnosis diagnose_starved(const Contender& c, const NodeTable& nodes, const Config& config) {
  const Measurement& m = *c.job->observation.measurement;
  if (!m.local && !m.remote) return {};
  const double available = available_cores(c, m);
  if (c.belief.busy_cores >= kCpuUsedUp * available) return {Bottleneck::kDataBoundCpu, available};
  if (const double load = network_load(c, nodes); load >= config.network_bound_above)
    return {Bottleneck::kDataBoundNetwork, available, load};
  const double idle = std::max(available - c.belief.busy_cores, 1e-9);
  if (m.reading_threads && *m.reading_threads >= config.storage_bound_above * idle)
    return {Bottleneck::kDataBoundStorage, available};
  return {Bottleneck::kDataBoundOther, available};
}

}  // namespace

Diagnosis diagnose(const Contender& c, const NodeTable& nodes, const Config& config) {
  if (!c.job->running || !c.belief.metrics_problem.empty()) return {};
  if (c.belief.starved) return diagnose_starved(c, nodes, config);
  const bool gpu = c.belief.sated && c.job->observation.measurement->compute_share >= config.gpu_bound_above;
  return {gpu ? Bottleneck::kGpuBound : Bottleneck::kNotDataBound};
}

std::string evidence_of(const Diagnosis& diagnosis, const Contender& c) {
  if (!c.job->running) return {};
  if (!c.belief.metrics_problem.empty()) return c.belief.metrics_problem;
  const Measurement& m = *c.job->observation.measurement;
  Text text;
  text << "waits " << Percent{c.belief.wait_share};
  if (!c.belief.starved) {
    text << ", computes " << Percent{m.compute_share} << " of the time";
  } else if (diagnosis.bottleneck == Bottleneck::kUnknown) {
    text << "; its executors are not measured";
  } else {
    text << "; " << Number{c.belief.busy_cores} << " of " << Number{diagnosis.available_cores} << " cores at work";
    if (diagnosis.bottleneck == Bottleneck::kDataBoundNetwork)
      text << "; a host's network is " << Percent{diagnosis.network_load} << " full";
    if (diagnosis.bottleneck == Bottleneck::kDataBoundStorage)
      text << "; " << Number{*m.reading_threads} << " threads blocked in reads";
  }
  return text.take();
}

}  // namespace sluice::scheduler
