#include "scheduler/estimate/read_limit.h"

#include <algorithm>
#include <cmath>

#include "scheduler/estimate/estimator.h"

namespace sluice::scheduler {
namespace {

// CPU that was at work during the whole window.
struct Available {
  double cores = 0;
  double supply_cores = 0;  // local-equivalent
};

Available available_cores(const Job& job, const Estimate& estimate) {
  const Measurement& m = *job.observation.measurement;
  const double remote_cores = ready_cores(job, m.window_end_seconds - m.window_seconds);
  return {estimate.local_held_cores + remote_cores, estimate.local_held_cores + estimate.efficiency() * remote_cores};
}

bool wait_for_reads(const Measurement& m, double available_cores, const Config& config, const Estimate& estimate) {
  if (!estimate.starved || !m.blocked_threads) return false;
  const double idle = available_cores - estimate.busy_cores;
  return idle > config.read_limit_idle_above * available_cores &&
         *m.blocked_threads >= config.storage_bound_above * idle;
}

}  // namespace

void watch_reads(const Job& job, const Config& config, Estimate& estimate) {
  std::optional<ReadLimit>& reads = estimate.memory->reads;
  if (!estimate.starved) return reads.reset();
  if (!estimate.feeders_seen) return;
  const Measurement& m = *job.observation.measurement;
  const Available available = available_cores(job, estimate);
  ReadLimit now{available.supply_cores, m.samples_per_second / (m.compute_share + m.wait_share), false};
  if (now.supply_cores <= 0 || now.samples_per_second <= 0) return;
  if (!reads) {
    reads = now;
    return;
  }
  const double change = std::log(now.supply_cores / reads->supply_cores);
  if (std::abs(change) < std::log1p(config.judged_gain)) return;
  const double followed = std::log(now.samples_per_second / reads->samples_per_second) / change;
  now.is_proven = followed < config.least_share_of_gain &&
                  (reads->is_proven || wait_for_reads(m, available.cores, config, estimate));
  reads = now;
}

std::optional<double> useful_supply_cores(const Job& job, const Estimate& estimate, const Config& config) {
  if (!estimate.reads_limit()) return std::nullopt;
  const double held = estimate.held_supply_ratio(job) * std::max(estimate.knee_cores, 1e-9);
  const double busy_remote_cores = estimate.busy_cores - estimate.busy_local_cores;
  const double busy = estimate.busy_local_cores + estimate.efficiency() * busy_remote_cores;
  return std::max(held, config.read_limit_headroom * busy);
}

}  // namespace sluice::scheduler
