#include "scheduler/allocate/target.h"

#include <algorithm>
#include <cmath>

#include "scheduler/estimate/read_limit.h"
#include "scheduler/model/progress.h"

namespace sluice::scheduler {
namespace {

// Workers that the job would keep if more had been shown to be useless.
int useful_workers(const Job& job, const Estimate& estimate, int workers) {
  if (!estimate.useless_above_cores) return workers;
  const double cores = static_cast<double>(job.worker_millicores) / 1000;
  return std::min(workers, static_cast<int>(*estimate.useless_above_cores / cores + 1e-9));
}

// A starved job never gives up a worker, even if its estimate says it has enough: waiting outranks the model. Except
// those that were tried and did not help.
Target target_of_starved(const Job& job, const Estimate& estimate, const Config& config) {
  const int held = job.allocated_workers;
  if (!estimate.known && held == 0 && !estimate.worth_probing) return {0, Reason::kTooFewBatches};
  if (!estimate.known) return {std::max(held, 1), Reason::kProbing};
  int needed = whole_workers(estimate.remote_cores_for(estimate.knee_cores, config.headroom), job);
  if (const auto supply = useful_supply_cores(job, estimate, config)) {
    const double remote_cores = std::max(0.0, *supply - estimate.local_held_cores) / estimate.efficiency();
    const int fed = std::max(held, whole_workers(remote_cores, job));
    if (fed < needed) return {fed, Reason::kStorage};
  }
  const int useful = useful_workers(job, estimate, std::max(held, needed));
  if (useful < std::max(held, needed)) return {useful, Reason::kNoEffect};
  const int reach = std::max(1, whole_workers(config.remote_extrapolation * estimate.busy_cores, job));
  if (needed > reach && reach >= held) return {reach, Reason::kExtrapolation};
  return {std::max(held, needed), Reason::kNeedMet};
}

// A job that hardly waits never grows. It shrinks when its own feeders suffice. It also shrinks when it never waits and
// whole workers are left over after the headroom. Between the thresholds its number stays.
Target target_of_content(const Job& job, const Estimate& estimate, const Config& config) {
  const int held = job.allocated_workers;
  if (held == 0) return {0, Reason::kNotDataBound};
  if (!estimate.known || !estimate.enough_batches) return {held, Reason::kTooFewBatches};
  const int needed = whole_workers(estimate.remote_cores_for(estimate.knee_cores, config.headroom), job);
  // Feeders that just meet the demand do not suffice: without its workers the job would starve at once and get them
  // back.
  const bool with_headroom = estimate.local_cores >= config.headroom * estimate.knee_cores;
  if (needed == 0 && (estimate.sated || with_headroom)) return {0, Reason::kNotDataBound};
  if (!estimate.sated || needed > held) return {held, Reason::kSated};
  return {needed, Reason::kNeedMet};
}

// Where the plan sets the feeders' CPU as well, the target is a supply ratio: up to where the curve is flat. A job that
// practically never waits gets no more than it has. Growth finds out how much of it is local.
Target target_of_adjustable(const Job& job, const Estimate& estimate, const Config& config) {
  if (!estimate.known) return {job.allocated_workers, Reason::kTooFewBatches, TargetKind::kHeld};
  const double flat = supply_ratio_at_slope(config.min_slope, config.softmin_exponent);
  const double held = estimate.held_supply_ratio(job);
  Target target{job.max_workers, Reason::kNeedMet, TargetKind::kCompeting, flat};
  if (estimate.sated && held < flat) {
    target.supply_ratio = held;
    target.reason = Reason::kSated;
  } else if (!estimate.starved && !estimate.sated && held > flat) {
    target.supply_ratio = held;
    target.reason = Reason::kSated;
  }
  if (const auto useful = useful_supply_cores(job, estimate, config);
      useful && *useful < target.supply_ratio * estimate.knee_cores) {
    target.supply_ratio = *useful / estimate.knee_cores;
    target.reason = Reason::kStorage;
  }
  const int reach = std::max(job.allocated_workers,
                             std::max(1, whole_workers(config.remote_extrapolation * estimate.busy_cores, job)));
  if (reach < target.workers) {
    target.workers = reach;
    target.limit_reason = Reason::kExtrapolation;
  }
  const int useful = useful_workers(job, estimate, target.workers);
  if (useful < target.workers) {
    target.workers = useful;
    target.limit_reason = Reason::kNoEffect;
  }
  return target;
}

Target bounded(Target target, const Job& job) {
  if (target.workers < job.min_workers) {
    target.workers = job.min_workers;
    target.reason = Reason::kMin;
  }
  if (target.workers > job.max_workers) {
    target.workers = job.max_workers;
    target.reason = Reason::kMax;
  }
  return target;
}

}  // namespace

Target target_of(const Job& job, const Estimate& estimate, const Config& config) {
  if (job.mode == Mode::kOff) return {job.allocated_workers, Reason::kModeOff, TargetKind::kHeld};
  if (!job.running) return {0, Reason::kNotRunning};
  if (job.placement == Placement::kLocal) {
    const double supply_ratio = job.local_adjustable ? target_of_adjustable(job, estimate, config).supply_ratio : 0;
    return {0, Reason::kPlacementLocal, TargetKind::kCompeting, supply_ratio, Reason::kPlacementLocal};
  }
  if (!estimate.metrics_problem.empty()) {
    Target held = bounded({job.allocated_workers, Reason::kNoMetrics}, job);
    held.kind =
        estimate.unmeasured_seconds < config.metrics_fallback_seconds ? TargetKind::kHeld : TargetKind::kLeftover;
    if (held.is_leftover() && held.reason == Reason::kNoMetrics) held.reason = Reason::kMetricsFallback;
    return held;
  }
  if (job.local_adjustable && job.mode == Mode::kAuto) return bounded(target_of_adjustable(job, estimate, config), job);
  return bounded(estimate.starved ? target_of_starved(job, estimate, config) : target_of_content(job, estimate, config),
                 job);
}

}  // namespace sluice::scheduler
