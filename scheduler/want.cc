#include "scheduler/want.h"

#include <algorithm>
#include <cmath>

#include "scheduler/progress.h"

namespace sluice::scheduler {
namespace {

// Workers that the job would keep if more had been shown to be useless.
int useful_workers(const Job& job, const Belief& belief, int workers) {
  if (!belief.useless_above_cores) return workers;
  const double cores = static_cast<double>(job.worker_millicores) / 1000;
  return std::min(workers, static_cast<int>(*belief.useless_above_cores / cores + 1e-9));
}

// A starved job never gives up a worker, even if its estimate says it has enough: waiting outranks the model. Except
// those that were tried and did not help.
Want want_of_starved(const Job& job, const Belief& belief, const Config& config) {
  const int held = job.allocated_workers;
  if (!belief.known) return {std::max(held, 1), Reason::kProbing};
  const int needed = whole_workers(belief.remote_cores_for(belief.knee_cores, config.headroom), job);
  const int useful = useful_workers(job, belief, std::max(held, needed));
  if (useful < std::max(held, needed)) return {useful, Reason::kNoEffect};
  const int reach = std::max(1, whole_workers(config.remote_extrapolation * belief.busy_cores, job));
  if (needed > reach && reach >= held) return {reach, Reason::kExtrapolation};
  return {std::max(held, needed), Reason::kNeedMet};
}

// A job that hardly waits never grows. It shrinks when its own feeders suffice, or when it never waits at all
// and whole workers are left over after the headroom; between the thresholds it is left in peace.
Want want_of_content(const Job& job, const Belief& belief, const Config& config) {
  const int held = job.allocated_workers;
  if (held == 0) return {0, Reason::kNotDataBound};
  if (!belief.known || !belief.enough_batches) return {held, Reason::kTooFewBatches};
  const int needed = whole_workers(belief.remote_cores_for(belief.knee_cores, config.headroom), job);
  // Feeders that just meet the demand do not suffice: without its workers the job would starve at once and get them
  // back.
  const bool with_headroom = belief.local_cores >= config.headroom * belief.knee_cores;
  if (needed == 0 && (belief.sated || with_headroom)) return {0, Reason::kNotDataBound};
  if (!belief.sated || needed > held) return {held, Reason::kSated};
  return {needed, Reason::kNeedMet};
}

// Where the plan sets the feeders' CPU as well, a supply ratio is wanted; how it is made up is for the allocation to
// find out. Up to where the curve is flat; a job that practically never waits is not given more than it has.
Want want_of_adjustable(const Job& job, const Belief& belief, const Config& config) {
  if (!belief.known) return {job.allocated_workers, Reason::kTooFewBatches, true};
  const double flat = supply_ratio_at_slope(config.min_slope, config.softmin_exponent);
  const double held = belief.held_supply_ratio(job);
  Want want{job.max_workers, Reason::kNeedMet, false, flat};
  if (belief.sated && held < flat) {
    want.supply_ratio = held;
    want.reason = Reason::kSated;
  } else if (!belief.starved && !belief.sated && held > flat) {
    want.supply_ratio = held;
    want.reason = Reason::kSated;
  }
  const int reach =
      std::max(job.allocated_workers, std::max(1, whole_workers(config.remote_extrapolation * belief.busy_cores, job)));
  if (reach < want.workers) {
    want.workers = reach;
    want.limit_reason = Reason::kExtrapolation;
  }
  const int useful = useful_workers(job, belief, want.workers);
  if (useful < want.workers) {
    want.workers = useful;
    want.limit_reason = Reason::kNoEffect;
  }
  return want;
}

Want bounded(Want want, const Job& job) {
  if (want.workers < job.min_workers) {
    want.workers = job.min_workers;
    want.reason = Reason::kMin;
  }
  if (want.workers > job.max_workers) {
    want.workers = job.max_workers;
    want.reason = Reason::kMax;
  }
  return want;
}

}  // namespace

Want want_of(const Job& job, const Belief& belief, const Config& config) {
  if (job.mode == Mode::kOff) return {job.allocated_workers, Reason::kModeOff, true};
  if (!job.running) return {0, Reason::kNotRunning};
  if (job.placement == Placement::kLocal) {
    const double supply_ratio = job.local_adjustable ? want_of_adjustable(job, belief, config).supply_ratio : 0;
    return {0, Reason::kPlacementLocal, false, supply_ratio, Reason::kPlacementLocal};
  }
  if (!belief.metrics_problem.empty()) {
    Want held = bounded({job.allocated_workers, Reason::kNoMetrics}, job);
    held.last_in_line = belief.unmeasured_seconds >= config.metrics_fallback_seconds;
    held.unconditional = !held.last_in_line;
    if (held.last_in_line && held.reason == Reason::kNoMetrics) held.reason = Reason::kMetricsFallback;
    return held;
  }
  if (job.local_adjustable && job.mode == Mode::kAuto) return bounded(want_of_adjustable(job, belief, config), job);
  return bounded(belief.starved ? want_of_starved(job, belief, config) : want_of_content(job, belief, config), job);
}

}  // namespace sluice::scheduler
