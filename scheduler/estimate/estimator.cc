#include "scheduler/estimate/estimator.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>

#include "scheduler/estimate/feedback.h"
#include "scheduler/estimate/read_limit.h"

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

// Whether an unmeasured job is starved beyond doubt. A window of a few batches shows a wait that one late batch makes.
// On a busy machine such a hiccup gave the demo's text job a worker, which it had no use for.
bool is_worth_probing(const Measurement& m, const Estimate& estimate, const Config& config, EstimatorMemory& memory) {
  if (!estimate.starved) {
    memory.starved_since_seconds.reset();
    return false;
  }
  if (!memory.starved_since_seconds) memory.starved_since_seconds = m.window_end_seconds;
  const bool is_second_window = m.window_end_seconds - m.window_seconds >= *memory.starved_since_seconds;
  return estimate.enough_batches || is_second_window || estimate.wait_share > config.probed_at_once_above;
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

  estimate.worth_probing = is_worth_probing(m, estimate, config, *estimate.memory);
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
