#include "scheduler/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "scheduler/progress.h"

namespace sluice::scheduler {
namespace {

// Executors that use less of their CPU than this while the trainer starves are waiting for something else.
constexpr double kCpuUsedUp = 0.5;

double worker_cores(const Job& job) { return static_cast<double>(job.worker_millicores) / 1000; }

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : "%.3g", value);
  return text;
}

std::string percent(double ratio) { return number(std::round(100 * ratio)) + " %"; }

std::string counted(int workers) { return std::to_string(workers) + (workers == 1 ? " worker" : " workers"); }

std::string sized(int workers, const Job& job) {
  return counted(workers) + " of " + std::to_string(job.worker_millicores) + "m";
}

Bottleneck bottleneck_of(const Job& job, const Belief& belief) {
  if (!job.running || !belief.metrics_problem.empty()) return Bottleneck::kUnknown;
  if (!belief.starved) return Bottleneck::kNotDataBound;
  const Measurement& m = *job.observation.measurement;
  if (!m.local && !m.remote) return Bottleneck::kUnknown;
  const double available_cores = static_cast<double>(local_limit_millicores(job)) / 1000 +
                                 ready_cores(job, m.window_end_seconds - m.window_seconds);
  return belief.busy_cores >= kCpuUsedUp * available_cores ? Bottleneck::kDataBoundCpu : Bottleneck::kDataBoundOther;
}

Estimate estimate_of(const Job& job, const Belief& belief, double now_seconds, int planned, const Config& config) {
  Estimate estimate;
  estimate.wait_share = belief.wait_share;
  if (!belief.known) return estimate;
  estimate.demand_samples_per_second = belief.demand_samples_per_second;
  estimate.local_rate_per_core = belief.local_rate_per_core;
  estimate.remote_rate_per_core = belief.remote_rate_per_core;
  estimate.knee_millicores = std::llround(1000 * belief.knee_cores);
  estimate.supply_ratio = belief.supply_ratio(ready_cores(job, now_seconds), job, config);
  estimate.planned_supply_ratio = belief.supply_ratio(planned * worker_cores(job), job, config);
  estimate.confidence = belief.confidence;
  return estimate;
}

double next_worker_gain_percent(const Job& job, const Belief& belief, int planned, const Config& config) {
  if (!belief.known) return 0;
  const double q = config.softmin_exponent;
  const double now = progress(belief.supply_ratio(planned * worker_cores(job), job, config), q);
  const double then = progress(belief.supply_ratio((planned + 1) * worker_cores(job), job, config), q);
  return now > 0 ? 100 * (then / now - 1) : 100;
}

// "wants 920 samples/s, which takes 0.74 cores at 1250 samples/s per core"
std::string demand_text(const JobPlan& plan) {
  const Estimate& e = plan.estimate;
  return "wants " + number(e.demand_samples_per_second) + " samples/s, which takes " +
         number(e.knee_millicores / 1000.0) + " cores at " + number(e.local_rate_per_core) + " samples/s per core";
}

// "3 workers of 250m bring supply to 113 % of that"
std::string supply_text(const Job& job, const JobPlan& plan) {
  if (plan.recommended == 0)
    return "without workers supply is " + percent(plan.estimate.planned_supply_ratio) + " of that";
  return sized(plan.recommended, job) + (plan.recommended == 1 ? " brings" : " bring") + " supply to " +
         percent(plan.estimate.planned_supply_ratio) + " of that";
}

std::string gain_text(const JobPlan& plan) {
  return "one more would bring " + percent(plan.next_worker_gain_percent / 100);
}

std::string waits_text(const JobPlan& plan) {
  return "The trainer waits " + percent(plan.estimate.wait_share) + " of its time for data";
}

// The figures, where there are any, after a reason that does not need them.
std::string with_figures(const std::string& reason, const Job& job, const JobPlan& plan) {
  if (plan.estimate.confidence == Confidence::kNone) return reason + ".";
  return reason + "; it " + demand_text(plan) + ", " + supply_text(job, plan) + ", " + gain_text(plan) + ".";
}

std::string sentence(const Job& job, const JobPlan& plan) {
  const std::string workers = counted(plan.recommended);
  switch (plan.reason) {
    case Reason::kNotRunning: return "Not running: no data workers.";
    case Reason::kModeOff: return "Mode Off: left at " + workers + ".";
    case Reason::kPlacementLocal: return "Placement Local: all data work stays in the trainer's pods.";
    case Reason::kNoMetrics: return "Holding " + workers + ": " + plan.metrics_problem + ".";
    case Reason::kTooFewBatches:
      return "Holding " + workers + ": too few batches in the metrics window to estimate from.";
    case Reason::kProbing:
      return waits_text(plan) + ", and no executor has been measured yet: " + workers + " to measure with.";
    case Reason::kNotDataBound: return waits_text(plan) + ": not data-bound, so no data workers.";
    case Reason::kNeedMet: return with_figures(waits_text(plan), job, plan);
    case Reason::kSated: return with_figures(waits_text(plan) + ": " + workers + " stay", job, plan);
    case Reason::kExtrapolation:
      return with_figures(waits_text(plan) + " and needs far more than was ever measured: a first step to " + workers,
                          job, plan);
    case Reason::kMin: return with_figures("min holds it at " + workers, job, plan);
    case Reason::kMax: return with_figures("max limits it to " + workers, job, plan);
    case Reason::kNoEffect:
      return with_figures("More workers were tried and brought no speed: " + workers + " stay", job, plan);
    case Reason::kQuota: return with_figures("The quota limits it to " + workers, job, plan);
    case Reason::kBudget: return with_figures("The budget limits it to " + workers, job, plan);
    case Reason::kNetwork: return with_figures("The network limits it to " + workers, job, plan);
    case Reason::kFlat: return with_figures("More than " + workers + " would bring next to nothing", job, plan);
    case Reason::kCpu: return with_figures("No node has room for more than " + workers, job, plan);
  }
  return {};
}

}  // namespace

void explain(const Job& job, const Belief& belief, double now_seconds, const Config& config, JobPlan& plan) {
  plan.metrics_problem = belief.metrics_problem;
  plan.metrics_usable = belief.metrics_problem.empty();
  plan.memory = belief.memory;
  plan.estimate = estimate_of(job, belief, now_seconds, plan.recommended, config);
  plan.bottleneck = bottleneck_of(job, belief);
  plan.next_worker_gain_percent = next_worker_gain_percent(job, belief, plan.recommended, config);
  plan.explanation = sentence(job, plan);
  if (job.mode == Mode::kRecommend && job.running) {
    plan.explanation =
        "Recommends " + counted(plan.recommended) + " (has " + std::to_string(plan.workers) + "). " + plan.explanation;
  }
}

}  // namespace sluice::scheduler
