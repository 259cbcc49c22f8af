#include "scheduler/want.h"

#include <algorithm>

namespace sluice::scheduler {
namespace {

// A starved job never gives up a worker, even if its estimate says it has enough: waiting outranks the model.
Want want_of_starved(const Job& job, const Belief& belief, const Config& config) {
  const int held = job.allocated_workers;
  if (!belief.known) return {std::max(held, 1), Reason::kProbing};
  const int needed = whole_workers(belief.remote_cores_for(belief.knee_cores, config.headroom), job);
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
  if (needed == 0) return {0, Reason::kNotDataBound};
  if (!belief.sated || needed > held) return {held, Reason::kSated};
  return {needed, Reason::kNeedMet};
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
  if (job.placement == Placement::kLocal) return {0, Reason::kPlacementLocal};
  if (!belief.metrics_problem.empty()) {
    Want held = bounded({job.allocated_workers, Reason::kNoMetrics}, job);
    held.unconditional = true;
    return held;
  }
  return bounded(belief.starved ? want_of_starved(job, belief, config) : want_of_content(job, belief, config), job);
}

}  // namespace sluice::scheduler
