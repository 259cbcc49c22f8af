#include "scheduler/estimate/feedback.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "scheduler/estimate/estimator.h"
#include "scheduler/estimate/read_limit.h"
#include "scheduler/model/progress.h"

namespace sluice::scheduler {
namespace {

// Whether the measurement shows the effect of exactly the workers in force: all there, at work during the whole window.
// To be ready is not enough. In the demo six workers that still imported their pipeline were judged to be of no use.
// The job that needed them most was left without any.
bool settled(const Job& job, const Measurement& m) {
  const double window_start_seconds = m.window_end_seconds - m.window_seconds;
  const auto in_effect = [&](const Worker& worker) {
    return worker.ready && !worker.draining && worker.ready_since_seconds <= window_start_seconds;
  };
  return static_cast<int>(job.workers.size()) == job.allocated_workers &&
         m.workers_at_work.value_or(job.allocated_workers) >= job.allocated_workers &&
         std::all_of(job.workers.begin(), job.workers.end(), in_effect);
}

// Progress that the curve gives for so many local-equivalent cores.
double promised_progress(double cores, double knee_cores, const Config& config) {
  return progress(cores / std::max(knee_cores, 1e-9), config.softmin_exponent);
}

// A trainer does not wait for workers that idle meanwhile; the transport, the feeder or the trainer's own
// CPU is. In the demo a trainer throttled by its own limit drew worker after worker from a job that they would have
// helped.
bool workers_are_busy(const Job& job, const Measurement& m, const Config& config) {
  const double granted_cores = job.allocated_workers * worker_cores(job);
  if (granted_cores == 0) return true;
  return m.remote && m.remote->busy_cores >= config.feedback_busy_above * granted_cores;
}

// A trainer may wait while the next batches lie ready. Then it does not lack supply: an epoch begins, or its own CPU is
// short. In the demo, whose epochs take five seconds, that made the knee half as large again. Where it is not known
// what lies ready, supply is not known to be short either.
bool queue_runs_low(const Measurement& m, const Config& config) {
  return m.queue && m.queue->depth < config.feedback_queue_below * m.queue->capacity;
}

// A soft knee makes a trainer wait a little even where supply meets demand: only less speed than that tells of an
// error.
bool slower_than_promised(double wait_share, double supply_ratio, const Config& config) {
  const double promised = progress(supply_ratio, config.softmin_exponent);
  return 1 - wait_share < promised - config.feedback_tolerance;
}

// How much the trainer waits with the workers in force, once that is known well enough to correct by. The noisier the
// series, the more windows it takes. At 30 % noise one window proved shortages that were none, which cost 6 % of mean
// completion time.
std::optional<double> steady_wait_share(const Job& job, const Estimate& estimate, const Config& config,
                                        EstimatorMemory& memory) {
  const Measurement& m = *job.observation.measurement;
  SteadySpell& steady = memory.steady;
  const bool is_settled = settled(job, m) && estimate.feeders_seen;
  if (!is_settled || steady.workers != job.allocated_workers) steady.windows = 0;
  steady.workers = job.allocated_workers;
  if (!is_settled || m.window_end_seconds - steady.through_seconds < m.window_seconds) return std::nullopt;
  constexpr double kMostWindows = 32;
  const double windows = std::ceil(std::pow(memory.knee_cores->noise / config.feedback_noise, 2));
  const int needed = static_cast<int>(std::clamp(windows, 1.0, kMostWindows));
  steady.through_seconds = m.window_end_seconds;
  steady.windows = std::min(steady.windows + 1, needed);
  steady.wait_share += (estimate.wait_share - steady.wait_share) / steady.windows;
  return steady.windows == needed ? std::optional(steady.wait_share) : std::nullopt;
}

}  // namespace

// Corrects the knee by its observed effect, at most once per window.
void feed_back(const Job& job, const Config& config, Estimate& estimate) {
  const Measurement& m = *job.observation.measurement;
  EstimatorMemory& memory = *estimate.memory;
  if (!estimate.known) return;
  const std::optional<double> wait_share = steady_wait_share(job, estimate, config, memory);
  if (!wait_share) return;

  // The same count as the plan's: where the plan sets the feeders' CPU, the CPU that they hold. Executors may report a
  // third of the CPU that they use. By their reports such a job never looked supplied, and it stayed below its static
  // share.
  const bool by_what_is_held = job.local_adjustable && job.mode == Mode::kAuto && job.placement != Placement::kRemote;
  const double x = by_what_is_held ? estimate.held_supply_ratio(job)
                                   : estimate.supply_ratio(job.allocated_workers * worker_cores(job), job, config);
  double corrected = memory.feedback;
  if (*wait_share > config.starved_above && x > config.feedback_raise_above &&
      slower_than_promised(*wait_share, x, config)) {
    if (!workers_are_busy(job, m, config) || !queue_runs_low(m, config) || reads_slow(job, config, estimate)) return;
    // A starved trainer's speed, read off the curve, says what the cores that look like x are really worth. In the demo
    // a job waited 8 % with a supply of 160 %, mostly because its knee is soft. It was taken to need twice as much, and
    // took it from a job that had next to nothing.
    const double share = std::clamp(1 - *wait_share, 1e-3, 1 - 1e-9);
    const double shortfall = x / supply_ratio_at(share, config.softmin_exponent);
    corrected = memory.feedback * std::clamp(shortfall, config.feedback_raise, config.feedback_raise_most);
    corrected = std::min(corrected, config.feedback_limit);
    memory.feedback_floor = corrected;
  } else if (*wait_share < config.sated_below && x > config.feedback_lower_above &&
             job.allocated_workers > job.min_workers) {
    // A job with a correct knee and its headroom never waits either. Lowering a knee whose rates were all
    // measured would eat the headroom and then starve the job, so that only undoes earlier raises.
    const double lowest = estimate.confidence == Confidence::kMeasured ? 1 : 1 / config.feedback_limit;
    corrected =
        std::min(memory.feedback, std::max({memory.feedback * config.feedback_lower, memory.feedback_floor, lowest}));
  }
  if (corrected == memory.feedback) return;
  memory.feedback = corrected;
  memory.steady.windows = 0;
  estimate.knee_cores = estimate.measured_knee_cores * corrected;
}

// Whether the last growth brought speed. Speed is per second of training, so that evaluation pauses do not count. The
// CPU that the feeders really used is part of the supply, as idle CPU of their hosts comes and goes. Growth was useless
// only if the job is no faster than before and also slower than the curve says. In the demo a job did 300 samples/s out
// of its prefetched first batches, 85 after them and 300 with workers. By the first of these figures alone it lost its
// workers.
void judge_growth(const Job& job, const Config& config, Estimate& estimate) {
  const Measurement& m = *job.observation.measurement;
  EstimatorMemory& memory = *estimate.memory;
  if (!estimate.known || !settled(job, m)) return;
  const double cores = job.allocated_workers * worker_cores(job);
  const double speed = m.samples_per_second / (m.compute_share + m.wait_share);
  const double supply = estimate.busy_local_cores + estimate.efficiency() * cores;
  const GrowthRecord now{cores, supply, speed};
  if (!memory.before_growth || cores <= memory.before_growth->remote_cores) {
    memory.before_growth = now;
    return;
  }
  const GrowthRecord& before = *memory.before_growth;
  const double promised_before = promised_progress(before.supply_cores, estimate.measured_knee_cores, config);
  const double promised_now = promised_progress(supply, estimate.measured_knee_cores, config);
  if (promised_now < promised_before * (1 + config.judged_gain)) return;
  const double least = promised_before + config.least_share_of_gain * (promised_now - promised_before);
  const bool no_faster = speed * promised_before < before.samples_per_second * least;
  if (estimate.starved && no_faster && 1 - estimate.wait_share < least) {
    memory.useless_above_cores = before.remote_cores;
    memory.useless_since_seconds = m.window_end_seconds;
    return;
  }
  memory.before_growth = now;
}

}  // namespace sluice::scheduler
