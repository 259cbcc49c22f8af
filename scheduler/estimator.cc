#include "scheduler/estimator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>

#include "scheduler/progress.h"

namespace sluice::scheduler {
namespace {

// Less CPU time than this in a window is mostly clock granularity: no rate is taken from it.
constexpr double kLeastBusySeconds = 0.1;

double worker_cores(const Job& job) { return static_cast<double>(job.worker_millicores) / 1000; }

bool all_valid(std::initializer_list<double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value) && value >= 0; });
}

bool all_valid(const std::optional<SourceRate>& rate) {
  return !rate || all_valid({rate->samples_per_second, rate->busy_cores});
}

// Why a measurement must not be used, or nothing. A missing metric is never zero: refusing holds the allocation.
std::string problem_of(const Observation& observation, double now_seconds, const Config& config) {
  if (!observation.measurement) return observation.missing_reason.empty() ? "no metrics" : observation.missing_reason;
  const Measurement& m = *observation.measurement;
  if (!all_valid({m.window_end_seconds, m.window_seconds, m.samples_per_second, m.compute_share, m.wait_share,
                  m.batches_in_window}) ||
      !all_valid(m.local) || !all_valid(m.remote) || !all_valid({m.workers_at_work.value_or(0)})) {
    return "the metrics contain values that are not numbers";
  }
  char text[128];
  if (const double age = now_seconds - m.window_end_seconds; age > config.max_age_seconds) {
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
  if (!rate || rate->samples_per_second <= 0 || rate->busy_cores * window_seconds < kLeastBusySeconds)
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

// Local cores that the plan may count on. A starved feeder gives what it gives, whatever its CPU limit promises
// (receiving from remote workers costs it CPU, too); an idle one can give more, but hosts saturate, so not any amount.
double counted_local_cores(const Job& job, const Belief& belief, const Config& config) {
  if (job.placement == Placement::kRemote) return 0;
  const double limit_cores = static_cast<double>(local_limit_millicores(job)) / 1000;
  if (!belief.metrics_problem.empty()) return limit_cores;
  const std::optional<SourceRate>& local = job.observation.measurement->local;
  const double busy_cores = local ? local->busy_cores : 0;
  if (belief.starved) return busy_cores;
  return std::min(std::max(limit_cores, busy_cores), config.local_extrapolation * busy_cores);
}

// Demand and rates from the memory, with the unmeasured derived.
void recall(const Job& job, const Config& config, Belief& belief) {
  const EstimatorMemory& memory = *belief.memory;
  if (!memory.knee_cores) return;
  belief.known = true;
  belief.demand_samples_per_second = memory.demand_samples_per_second;
  belief.local_rate_per_core = *local_basis(memory, config);
  belief.remote_rate_per_core = memory.remote_rate_per_core ? memory.remote_rate_per_core->published
                                                            : belief.local_rate_per_core * config.remote_efficiency;
  belief.measured_knee_cores = memory.knee_cores->published;
  belief.knee_cores = belief.measured_knee_cores * memory.feedback;
  belief.local_cores = counted_local_cores(job, belief, config);
  if (job.placement != Placement::kRemote) {
    for (const TrainerHost& host : job.hosts)
      belief.local_held_cores += static_cast<double>(host.request_millicores) / 1000;
    belief.local_held_cores = std::max(belief.local_held_cores, belief.busy_local_cores);
  }
  const bool remote_matters = belief.knee_cores > belief.local_cores;
  const bool measured = memory.local_rate_per_core && (memory.remote_rate_per_core || !remote_matters);
  belief.confidence = measured ? Confidence::kMeasured : Confidence::kAssumed;
}

// Whether the measurement shows the effect of exactly the workers in force: all there, at work during the whole window.
// To be ready is not enough: in the demo six workers that still imported their pipeline were judged to be of no use,
// and the job that needed them most was left without any.
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

// Workers that idle while their trainer waits are not what it waits for; the transport, the feeder or the trainer's own
// CPU is. In the demo a trainer throttled by its own limit drew worker after worker from a job that they would have
// helped.
bool workers_are_busy(const Job& job, const Measurement& m, const Config& config) {
  const double granted_cores = job.allocated_workers * worker_cores(job);
  if (granted_cores == 0) return true;
  return m.remote && m.remote->busy_cores >= config.feedback_busy_above * granted_cores;
}

// A trainer that waits while the next batches lie ready does not wait for supply, but for the beginning of an epoch, or
// for its own CPU. In the demo, whose epochs take five seconds, that made the knee half as large again.
bool batches_lie_ready(const Measurement& m, const Config& config) {
  return m.queue_capacity > 0 && m.queue_depth >= config.feedback_queue_below * m.queue_capacity;
}

// A soft knee makes a trainer wait a little even where supply meets demand: only less speed than that tells of an
// error.
bool slower_than_promised(const Belief& belief, double supply_ratio, const Config& config) {
  const double promised = progress(supply_ratio, config.softmin_exponent);
  return 1 - belief.wait_share < promised - config.feedback_tolerance;
}

// Corrects the knee by its observed effect, at most once per window.
void feed_back(const Job& job, const Config& config, Belief& belief) {
  const Measurement& m = *job.observation.measurement;
  EstimatorMemory& memory = *belief.memory;
  if (!belief.known || !settled(job, m) || m.window_end_seconds - memory.corrected_at_seconds < m.window_seconds)
    return;

  // By the count that the plan went by. Where it sets the feeders' CPU that is what they hold: executors that report a
  // third of the CPU they use never look supplied by what they report, and their job stayed below its static share.
  const bool by_what_is_held = job.local_adjustable && job.mode == Mode::kAuto && job.placement != Placement::kRemote;
  const double x = by_what_is_held ? belief.held_supply_ratio(job)
                                   : belief.supply_ratio(job.allocated_workers * worker_cores(job), job, config);
  double corrected = memory.feedback;
  if (belief.starved && x > config.feedback_raise_above && slower_than_promised(belief, x, config)) {
    if (!workers_are_busy(job, m, config) || batches_lie_ready(m, config)) return;
    // A starved trainer's speed says what the cores that look like x are really worth. Read off the curve: in the demo
    // a job that waited 8 % with a supply of 160 %, most of that from the softness of its knee, was taken to need twice
    // as much, and took it from one that had next to nothing.
    const double share = std::clamp(1 - belief.wait_share, 1e-3, 1 - 1e-9);
    const double shortfall = x / supply_ratio_at(share, config.softmin_exponent);
    corrected = memory.feedback * std::clamp(shortfall, config.feedback_raise, config.feedback_raise_most);
    corrected = std::min(corrected, config.feedback_limit);
    memory.feedback_floor = corrected;
  } else if (belief.sated && x > config.feedback_lower_above && job.allocated_workers > job.min_workers) {
    // Never waiting is also what a correct knee with its headroom looks like. Lowering a knee whose rates were all
    // measured would eat the headroom and then starve the job, so that only undoes earlier raises.
    const double lowest = belief.confidence == Confidence::kMeasured ? 1 : 1 / config.feedback_limit;
    corrected =
        std::min(memory.feedback, std::max({memory.feedback * config.feedback_lower, memory.feedback_floor, lowest}));
  }
  if (corrected == memory.feedback) return;
  memory.feedback = corrected;
  memory.corrected_at_seconds = m.window_end_seconds;
  belief.knee_cores = belief.measured_knee_cores * corrected;
}

// Whether the last growth brought speed. Speed is per second of training, so that evaluation pauses do not count, and
// what the feeders really used is part of the supply: idle CPU of their hosts comes and goes. It was useless only if
// the job is no faster than before, and slower than the curve says, too: in the demo a job that did 300 samples/s out
// of its prefetched first batches, 85 after them and 300 with workers lost its workers to the first of these figures.
void judge_growth(const Job& job, const Config& config, Belief& belief) {
  const Measurement& m = *job.observation.measurement;
  EstimatorMemory& memory = *belief.memory;
  if (!belief.known || !settled(job, m)) return;
  const double cores = job.allocated_workers * worker_cores(job);
  const double speed = m.samples_per_second / (m.compute_share + m.wait_share);
  const double supply = belief.busy_local_cores + belief.efficiency() * cores;
  const GrowthRecord now{cores, supply, speed};
  if (!memory.before_growth || cores <= memory.before_growth->remote_cores) {
    memory.before_growth = now;
    return;
  }
  const GrowthRecord& before = *memory.before_growth;
  const double promised_before = promised_progress(before.supply_cores, belief.measured_knee_cores, config);
  const double promised_now = promised_progress(supply, belief.measured_knee_cores, config);
  if (promised_now < promised_before * (1 + config.judged_gain)) return;
  const double least = promised_before + config.least_share_of_gain * (promised_now - promised_before);
  const bool no_faster = speed * promised_before < before.samples_per_second * least;
  if (belief.starved && no_faster && 1 - belief.wait_share < least) {
    memory.useless_above_cores = before.remote_cores;
    memory.useless_since_seconds = m.window_end_seconds;
    return;
  }
  memory.before_growth = now;
}

// A job that does not run is not missed.
void note_unmeasured(const Job& job, double now_seconds, Belief& belief) {
  if (!job.running) {
    if (belief.memory) belief.memory->unmeasured_since_seconds.reset();
    return;
  }
  if (!belief.memory) belief.memory = EstimatorMemory{};
  std::optional<double>& since_seconds = belief.memory->unmeasured_since_seconds;
  if (!since_seconds) since_seconds = now_seconds;
  belief.unmeasured_seconds = std::max(0.0, now_seconds - *since_seconds);
}

}  // namespace

double Belief::remote_cores_for(double knee, double headroom) const {
  return headroom * std::max(0.0, knee - local_cores) / efficiency();
}

double Belief::held_supply_ratio(const Job& job) const {
  const double held_cores = local_held_cores + efficiency() * job.allocated_workers * worker_cores(job);
  return held_cores / std::max(knee_cores, 1e-9);
}

double Belief::supply_ratio(double remote_cores, const Job& job, const Config& config) const {
  if (known) return (local_cores + efficiency() * remote_cores) / std::max(knee_cores, 1e-9);
  const double assumed_knee_cores =
      std::max(static_cast<double>(local_limit_millicores(job)) / 1000, worker_cores(job));
  return 1 - wait_share + config.remote_efficiency * remote_cores / assumed_knee_cores;
}

Belief estimate(const Job& job, double now_seconds, const Config& config) {
  Belief belief;
  belief.memory = job.memory;
  belief.metrics_problem = problem_of(job.observation, now_seconds, config);
  if (!belief.metrics_problem.empty()) {
    note_unmeasured(job, now_seconds, belief);
    if (belief.memory) recall(job, config, belief);
    return belief;
  }

  const Measurement& m = *job.observation.measurement;
  belief.wait_share = m.wait_share / (m.wait_share + m.compute_share);
  belief.starved = belief.wait_share > config.starved_above;
  belief.sated = belief.wait_share < config.sated_below;
  belief.busy_local_cores = m.local ? m.local->busy_cores : 0;
  belief.busy_cores = belief.busy_local_cores + (m.remote ? m.remote->busy_cores : 0);
  belief.enough_batches = m.batches_in_window >= config.min_batches && m.compute_share > 0 && m.samples_per_second > 0;

  if (!belief.memory) belief.memory = EstimatorMemory{};
  belief.memory->was_measured = true;
  belief.memory->unmeasured_since_seconds.reset();
  const bool is_new = m.window_end_seconds > belief.memory->folded_through_seconds;
  if (belief.enough_batches && is_new) fold(m, config, *belief.memory);
  recall(job, config, belief);
  if (belief.enough_batches && is_new) {
    feed_back(job, config, belief);
    judge_growth(job, config, belief);
  }
  const double tried_seconds = m.window_end_seconds - belief.memory->useless_since_seconds;
  if (belief.starved && tried_seconds < config.useless_retry_seconds)
    belief.useless_above_cores = belief.memory->useless_above_cores;
  return belief;
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
