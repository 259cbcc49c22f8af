#include "scheduler/estimate/estimator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>

#include "scheduler/estimate/read_limit.h"
#include "scheduler/model/progress.h"

namespace sluice::scheduler {
namespace {

// Less CPU time than this in a window is mostly clock granularity: no rate is taken from it.
constexpr double kLeastBusySeconds = 0.1;

// Beyond these no figure is a job's. Anybody's pod may export anything, and the quotients of such figures are infinite.
constexpr double kLeastFigure = 1e-9;
constexpr double kMostFigure = 1e12;

bool all_valid(std::initializer_list<double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value >= 0 && value <= kMostFigure; });
}

bool all_valid(const std::optional<SourceRate>& rate) {
  return !rate || all_valid({rate->samples_per_second, rate->busy_cores});
}

bool all_valid(const std::optional<PrefetchQueue>& queue) {
  return !queue || all_valid({queue->depth, queue->capacity});
}

// Why a measurement must not be used, or nothing. A missing metric is never zero: refusing holds the allocation.
std::string problem_of(const Observation& observation, bool may_be_late, double now_seconds, const Config& config) {
  if (!observation.measurement) return observation.missing_reason.empty() ? "no metrics" : observation.missing_reason;
  const Measurement& m = *observation.measurement;
  if (!all_valid({m.window_end_seconds, m.window_seconds, m.samples_per_second, m.compute_share, m.wait_share,
                  m.batches_in_window}) ||
      !all_valid(m.local) || !all_valid(m.remote) || !all_valid(m.queue) ||
      !all_valid({m.workers_at_work.value_or(0)})) {
    return "the metrics contain values that are not numbers, or that no job has";
  }
  char text[128];
  if (const double age = now_seconds - m.window_end_seconds; age > config.max_age_seconds && !may_be_late) {
    std::snprintf(text, sizeof text, "the metrics are %.0f s old (limit %.0f s)", age, config.max_age_seconds);
    return text;
  }
  if (m.window_seconds < config.min_window_seconds) {
    std::snprintf(text, sizeof text, "the metrics window of %.0f s is shorter than %.0f s", m.window_seconds,
                  config.min_window_seconds);
    return text;
  }
  if (m.compute_share + m.wait_share <= 0) return "the trainer reported no training step in the metrics window";
  return {};
}

std::optional<double> rate_per_core(const std::optional<SourceRate>& rate, double window_seconds) {
  if (!rate || rate->samples_per_second < kLeastFigure || rate->busy_cores * window_seconds < kLeastBusySeconds)
    return std::nullopt;
  return rate->samples_per_second / rate->busy_cores;
}

void take(std::optional<Tracked>& tracked, const std::optional<double>& measured, const Config& config) {
  if (!measured) return;
  if (tracked)
    tracked->take(*measured, config);
  else
    tracked = Tracked::starting_at(*measured);
}

// mu_L as measured, or derived from mu_R; none when neither is known.
std::optional<double> local_basis(const EstimatorMemory& memory, const Config& config) {
  if (memory.local_rate_per_core) return memory.local_rate_per_core->published;
  if (memory.remote_rate_per_core) return memory.remote_rate_per_core->published / config.remote_efficiency;
  return std::nullopt;
}

void take_knee(double knee_cores, const Config& config, EstimatorMemory& memory) {
  if (!memory.knee_cores) {
    memory.knee_cores = Tracked::starting_at(knee_cores);
    return;
  }
  const double before = memory.knee_cores->published;
  const Tracked::Step step = memory.knee_cores->take(knee_cores, config);
  if (step == Tracked::Step::kChanged) {
    memory.useless_above_cores.reset();
    memory.feedback_floor = 0;  // another demand: what starved the old one says nothing
  }
  if (step != Tracked::Step::kRefined) return;
  // What had been corrected by its effect was in part the error that the better value takes away.
  const double rise = memory.knee_cores->published / before;
  if ((memory.feedback > 1) != (rise > 1)) return;
  const double left = memory.feedback / rise;
  memory.feedback = memory.feedback > 1 ? std::max(1.0, left) : std::min(1.0, left);
}

// Takes one new measurement into the memory.
void fold(const Measurement& m, const Config& config, EstimatorMemory& memory) {
  memory.folded_through_seconds = m.window_end_seconds;
  memory.demand_samples_per_second = m.samples_per_second / m.compute_share;

  const std::optional<double> basis_before = local_basis(memory, config);
  const bool local_was_known = memory.local_rate_per_core.has_value();
  const bool remote_was_known = memory.remote_rate_per_core.has_value();
  const std::optional<double> local = rate_per_core(m.local, m.window_seconds);
  take(memory.local_rate_per_core, local, config);
  take(memory.remote_rate_per_core, rate_per_core(m.remote, m.window_seconds), config);

  const bool local_is_new = !local_was_known && memory.local_rate_per_core;
  const bool remote_is_new = !remote_was_known && memory.remote_rate_per_core;
  if (local_is_new || remote_is_new) {
    memory.feedback = 1;  // it corrected an assumption that a measurement has just replaced
    memory.feedback_floor = 0;
  }
  // The knee is counted in local cores: its unit was the assumed local rate and is the measured one from now on.
  if (local_is_new && memory.knee_cores)
    memory.knee_cores->rescale(*basis_before / memory.local_rate_per_core->published);
  const std::optional<double> basis = local ? local : local_basis(memory, config);
  if (basis) take_knee(memory.demand_samples_per_second / *basis, config, memory);
}

// Local cores that the plan may count on. A starved feeder counts with the CPU that it uses, whatever its limit
// promises: receiving from remote workers costs CPU, too. An idle one can give more, but only to a bound, as hosts
// saturate.
double counted_local_cores(const Job& job, const Estimate& estimate, const Config& config) {
  if (job.placement == Placement::kRemote) return 0;
  const double limit_cores = static_cast<double>(local_limit_millicores(job)) / 1000;
  if (!estimate.metrics_problem.empty()) return limit_cores;
  const std::optional<SourceRate>& local = job.observation.measurement->local;
  const double busy_cores = local ? local->busy_cores : 0;
  if (estimate.starved) return busy_cores;
  return std::min(std::max(limit_cores, busy_cores), config.local_extrapolation * busy_cores);
}

double held_local_cores(const Job& job) {
  std::int64_t millicores = 0;
  for (const TrainerHost& host : job.hosts) millicores += host.request_millicores;
  return static_cast<double>(millicores) / 1000;
}

// Since when the feeders have had the CPU that they have now.
void note_feeders(const Job& job, double now_seconds, EstimatorMemory& memory) {
  if (!job.running || job.hosts.empty()) return;
  const double held_cores = held_local_cores(job);
  if (!memory.feeders) memory.feeders = FeederSpell{held_cores, 0};
  FeederSpell& spell = *memory.feeders;
  constexpr double kSameFraction = 0.1;
  if (std::abs(held_cores - spell.cores) > kSameFraction * std::max(held_cores, spell.cores))
    spell = {held_cores, now_seconds};
}

// Whether the measurement shows the feeders with the CPU that they have now.
bool shows_feeders(const Measurement& m, const EstimatorMemory& memory) {
  return !memory.feeders || m.window_end_seconds - m.window_seconds >= memory.feeders->since_seconds;
}

// Only where the plan can take CPU back from the feeders.
void watch_trainer(const Job& job, const Config& config, EstimatorMemory& memory) {
  const Measurement& m = *job.observation.measurement;
  if (!job.local_adjustable) return;
  const double feeder_cores = m.local ? m.local->busy_cores : 0;
  memory.interference.take(feeder_cores, compute_seconds_per_batch(job), m.window_end_seconds, m.window_seconds,
                           config);
}

// Demand and rates from the memory, with the unmeasured derived.
void recall(const Job& job, const Config& config, Estimate& estimate) {
  const EstimatorMemory& memory = *estimate.memory;
  if (!memory.knee_cores) return;
  estimate.known = true;
  estimate.local_cap_cores = memory.interference.cap_cores;
  estimate.demand_samples_per_second = memory.demand_samples_per_second;
  estimate.local_rate_per_core = *local_basis(memory, config);
  estimate.remote_rate_per_core = memory.remote_rate_per_core ? memory.remote_rate_per_core->published
                                                              : estimate.local_rate_per_core * config.remote_efficiency;
  estimate.measured_knee_cores = memory.knee_cores->published;
  estimate.knee_cores = estimate.measured_knee_cores * memory.feedback;
  // At the smoothed demand: noise of one window must not move CPU from one job to another.
  if (const double demand = estimate.measured_knee_cores * estimate.local_rate_per_core;
      job.remaining_samples && demand > 0)
    estimate.remaining_seconds = *job.remaining_samples / demand;
  estimate.local_cores = counted_local_cores(job, estimate, config);
  if (job.placement != Placement::kRemote) estimate.local_held_cores = held_local_cores(job);
  const bool remote_matters = estimate.knee_cores > estimate.local_cores;
  const bool measured = memory.local_rate_per_core && (memory.remote_rate_per_core || !remote_matters);
  estimate.confidence = measured ? Confidence::kMeasured : Confidence::kAssumed;
}

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

// A job that does not run is not missed.
void note_unmeasured(const Job& job, double now_seconds, Estimate& estimate) {
  if (!job.running) {
    if (estimate.memory) estimate.memory->unmeasured_since_seconds.reset();
    return;
  }
  if (!estimate.memory) estimate.memory = EstimatorMemory{};
  std::optional<double>& since_seconds = estimate.memory->unmeasured_since_seconds;
  if (!since_seconds) since_seconds = now_seconds;
  estimate.unmeasured_seconds = std::max(0.0, now_seconds - *since_seconds);
}

}  // namespace

Estimate estimate_of(const Job& job, double now_seconds, const Config& config) {
  Estimate estimate;
  estimate.memory = job.memory;
  if (const auto& seen = job.observation.measurement; seen && all_valid({seen->window_end_seconds})) {
    if (!estimate.memory) estimate.memory = EstimatorMemory{};
    estimate.memory->arrivals.take(seen->window_end_seconds, now_seconds);
  }
  const bool may_be_late = estimate.memory && estimate.memory->arrivals.are_late_as_ever(now_seconds, config);
  estimate.metrics_problem = problem_of(job.observation, may_be_late, now_seconds, config);
  if (!estimate.metrics_problem.empty()) {
    note_unmeasured(job, now_seconds, estimate);
    if (estimate.memory) note_feeders(job, now_seconds, *estimate.memory);
    if (estimate.memory) recall(job, config, estimate);
    return estimate;
  }

  const Measurement& m = *job.observation.measurement;
  estimate.wait_share = m.wait_share / (m.wait_share + m.compute_share);
  estimate.starved = estimate.wait_share > config.starved_above;
  estimate.sated = estimate.wait_share < config.sated_below;
  estimate.busy_local_cores = m.local ? m.local->busy_cores : 0;
  estimate.busy_cores = estimate.busy_local_cores + (m.remote ? m.remote->busy_cores : 0);
  estimate.enough_batches = m.batches_in_window >= config.min_batches && m.compute_share >= kLeastFigure &&
                            m.samples_per_second >= kLeastFigure;

  estimate.memory->was_measured = true;
  estimate.memory->unmeasured_since_seconds.reset();
  note_feeders(job, now_seconds, *estimate.memory);
  estimate.feeders_seen = shows_feeders(m, *estimate.memory);
  const bool is_new = m.window_end_seconds > estimate.memory->folded_through_seconds;
  if (estimate.enough_batches && is_new) {
    fold(m, config, *estimate.memory);
    watch_trainer(job, config, *estimate.memory);
  }
  recall(job, config, estimate);
  if (estimate.enough_batches && is_new && estimate.known) watch_reads(job, config, estimate);
  estimate.reads_limit = reads_limit(job, config, estimate);
  if (estimate.enough_batches && is_new) {
    feed_back(job, config, estimate);
    judge_growth(job, config, estimate);
  }
  const double tried_seconds = m.window_end_seconds - estimate.memory->useless_since_seconds;
  if (estimate.starved && tried_seconds < config.useless_retry_seconds)
    estimate.useless_above_cores = estimate.memory->useless_above_cores;
  return estimate;
}

double compute_seconds_per_batch(const Job& job) {
  const Measurement& m = *job.observation.measurement;
  return m.compute_share * m.window_seconds * job.ranks / m.batches_in_window;
}

int whole_workers(double cores, const Job& job) {
  constexpr double kRounding = 1e-9;          // 3.0000000001 workers are three
  constexpr double kMostWorkers = 1'000'000;  // keeps the conversion defined for absurd measurements
  return static_cast<int>(std::ceil(std::clamp(cores / worker_cores(job) - kRounding, 0.0, kMostWorkers)));
}

double ready_cores(const Job& job, double since_seconds) {
  const auto counts = [&](const Worker& worker) {
    return worker.ready && !worker.draining && worker.ready_since_seconds <= since_seconds;
  };
  return static_cast<double>(std::count_if(job.workers.begin(), job.workers.end(), counts)) * worker_cores(job);
}

}  // namespace sluice::scheduler
