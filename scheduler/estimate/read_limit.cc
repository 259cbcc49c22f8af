#include "scheduler/estimate/read_limit.h"

#include <algorithm>
#include <cmath>

#include "scheduler/estimate/estimator.h"

namespace sluice::scheduler {
namespace {

constexpr int kMostProofs = 4;  // a finding lasts 600, 1200, 2400 and 4800 s

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

bool has_sign(const Measurement& m, double available_cores, const Config& config, const Estimate& estimate) {
  if (!estimate.starved || !m.blocked_threads) return false;
  const double idle = available_cores - estimate.busy_cores;
  return idle > config.read_limit_idle_above * available_cores &&
         *m.blocked_threads >= config.storage_bound_above * idle;
}

// A finding that nothing can refute any more, as no CPU comes or goes, must end by itself: each time it lasts longer.
bool holds(const ReadLimit& reads, double window_end_seconds, const Config& config) {
  if (reads.proofs == 0) return false;
  const double lasts_seconds = config.useless_retry_seconds * (1 << (reads.proofs - 1));
  return window_end_seconds - reads.proven_at_seconds < lasts_seconds;
}

// What the newest window adds to what is known. Whatever proves nothing leaves it as it is.
ReadLimit judged(const ReadLimit& known, const ReadLimit& now, bool waits, double window_end_seconds,
                 const Config& config) {
  const double change = std::log(now.supply_cores / known.supply_cores);
  if (std::abs(change) < std::log1p(config.judged_gain)) return known;
  const double followed = std::log(now.samples_per_second / known.samples_per_second) / change;
  ReadLimit judged = now;
  if (followed >= config.least_share_of_gain) return judged;
  judged.proofs = known.proofs;
  judged.proven_at_seconds = known.proven_at_seconds;
  if (!waits) return judged;
  if (!holds(known, window_end_seconds, config)) judged.proofs = std::min(known.proofs + 1, kMostProofs);
  judged.proven_at_seconds = window_end_seconds;
  return judged;
}

// A job whose data is all cached reads next to nothing, and no average is made of zeros.
void note_bytes(const std::optional<double>& measured, const Config& config, std::optional<Tracked>& tracked) {
  constexpr double kMostBytes = 1e12;
  if (!measured || !(*measured >= 0 && *measured <= kMostBytes)) return;
  const double bytes = std::max(*measured, 1.0);
  if (tracked)
    tracked->take(bytes, config);
  else
    tracked = Tracked::starting_at(bytes);
}

}  // namespace

void watch_reads(const Job& job, const Config& config, Estimate& estimate) {
  note_bytes(job.observation.measurement->read_bytes_per_sample, config, estimate.memory->read_bytes_per_sample);
  std::optional<ReadLimit>& reads = estimate.memory->reads;
  if (!estimate.starved) return reads.reset();
  const Measurement& m = *job.observation.measurement;
  const Available available = available_cores(job, estimate);
  const ReadLimit now{available.supply_cores, m.samples_per_second / (m.compute_share + m.wait_share)};
  if (!estimate.feeders_seen || now.supply_cores <= 0 || now.samples_per_second <= 0) return;
  const bool waits = has_sign(m, available.cores, config, estimate);
  reads = reads ? judged(*reads, now, waits, m.window_end_seconds, config) : now;
}

bool reads_slow(const Job& job, const Config& config, const Estimate& estimate) {
  if (estimate.reads_limit || job.storage.empty()) return estimate.reads_limit;
  return has_sign(*job.observation.measurement, available_cores(job, estimate).cores, config, estimate);
}

bool reads_limit(const Job& job, const Config& config, const Estimate& estimate) {
  const std::optional<ReadLimit>& reads = estimate.memory->reads;
  return estimate.starved && reads && holds(*reads, job.observation.measurement->window_end_seconds, config);
}

std::optional<double> useful_supply_cores(const Job& job, const Estimate& estimate, const Config& config) {
  if (!estimate.reads_limit) return std::nullopt;
  const double busy_remote_cores = estimate.busy_cores - estimate.busy_local_cores;
  const double busy = estimate.busy_local_cores + estimate.efficiency() * busy_remote_cores;
  return std::max(estimate.held_supply_cores(job), config.read_limit_headroom * busy);
}

}  // namespace sluice::scheduler
