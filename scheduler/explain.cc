#include "scheduler/explain.h"

#include <algorithm>
#include <cmath>

#include "scheduler/diagnosis.h"
#include "scheduler/progress.h"
#include "scheduler/wording.h"

namespace sluice::scheduler {
namespace {

Estimate estimate_of(const Contender& c, double now_seconds) {
  Estimate estimate;
  const Belief& belief = c.belief;
  estimate.wait_share = belief.wait_share;
  if (!belief.known) return estimate;
  estimate.demand_samples_per_second = belief.demand_samples_per_second;
  estimate.local_rate_per_core = belief.local_rate_per_core;
  estimate.remote_rate_per_core = belief.remote_rate_per_core;
  estimate.knee_millicores = std::llround(1000 * belief.knee_cores);
  const double local_cores = c.adjustable ? belief.local_held_cores : belief.local_cores;
  estimate.supply_ratio =
      (local_cores + belief.efficiency() * ready_cores(*c.job, now_seconds)) / std::max(belief.knee_cores, 1e-9);
  estimate.confidence = belief.confidence;
  return estimate;
}

// The constraint binds, in words; what is wanted and what is planned follow where they are known.
void say_reason(const Contender& c, const JobPlan& plan, Text& text) {
  const Workers workers{plan.recommended};
  const Percent waits{plan.estimate.wait_share};
  switch (plan.reason) {
    case Reason::kNotRunning: text << "Not running: no data workers"; break;
    case Reason::kModeOff: text << "Mode Off: left at " << workers; break;
    case Reason::kPlacementLocal: text << "Placement Local: all data work stays in the trainer's pods"; break;
    case Reason::kNoMetrics: text << "Holding " << workers << ": " << plan.metrics_problem; break;
    case Reason::kMetricsFallback:
      text << "Measured jobs go first, and leave it " << workers << ": " << plan.metrics_problem;
      break;
    case Reason::kTooFewBatches:
      text << "Holding " << workers << ": too few batches in the metrics window to estimate from";
      break;
    case Reason::kProbing:
      text << "The trainer waits " << waits
           << " of its time for data, and no executor has been measured yet: " << workers << " to measure with";
      break;
    case Reason::kNotDataBound:
      text << "The trainer waits " << waits << " of its time for data: not data-bound, so no data workers";
      break;
    case Reason::kNeedMet: text << "The trainer waits " << waits << " of its time for data"; break;
    case Reason::kSated:
      text << "The trainer waits " << waits << " of its time for data: " << workers << " stay";
      break;
    case Reason::kExtrapolation:
      text << "The trainer waits " << waits
           << " of its time for data and needs far more than was ever measured: a first step to " << workers;
      break;
    case Reason::kMin: text << "min holds it at " << workers; break;
    case Reason::kMax: text << "max limits it to " << workers; break;
    case Reason::kCpu: text << "No node has room for more than " << workers; break;
    case Reason::kNoEffect: text << "More workers were tried and brought no speed: " << workers << " stay"; break;
    case Reason::kQuota: text << "Quota " << c.job->quota << " limits it to " << workers; break;
    case Reason::kBudget: text << "The budget limits it to " << workers; break;
    case Reason::kNetwork: text << "The network limits it to " << workers; break;
    case Reason::kFlat: text << "More than " << workers << " would not be worth their price"; break;
  }
}

bool reason_has_figures(Reason reason) {
  switch (reason) {
    case Reason::kNotRunning:
    case Reason::kModeOff:
    case Reason::kPlacementLocal:
    case Reason::kNoMetrics:
    case Reason::kMetricsFallback:
    case Reason::kTooFewBatches:
    case Reason::kProbing:
    case Reason::kNotDataBound: return false;
    default: return true;
  }
}

// "; it wants 920 samples/s, which takes 0.74 cores at 1250 samples/s per core, 3 workers of 250m bring supply to 113 %
// of that, one more would bring 2 %"
void say_figures(const Contender& c, const JobPlan& plan, Text& text) {
  const Estimate& e = plan.estimate;
  text << "; it wants " << Number{e.demand_samples_per_second} << " samples/s, which takes "
       << Number{static_cast<double>(e.knee_millicores) / 1000} << " cores at " << Number{e.local_rate_per_core}
       << " samples/s per core, ";
  if (c.adjustable) {
    text << Number{static_cast<double>(c.local_millicores) / 1000} << " cores beside it";
    if (plan.recommended > 0)
      text << " and " << Workers{plan.recommended} << " of " << static_cast<long long>(c.job->worker_millicores) << "m";
    text << " bring supply to " << Percent{e.planned_supply_ratio} << " of that";
  } else if (plan.recommended == 0) {
    text << "without workers supply is " << Percent{e.planned_supply_ratio} << " of that";
  } else {
    text << Workers{plan.recommended} << " of " << static_cast<long long>(c.job->worker_millicores) << "m"
         << (plan.recommended == 1 ? " brings" : " bring") << " supply to " << Percent{e.planned_supply_ratio}
         << " of that";
  }
  text << ", one more would bring " << Percent{plan.next_worker_gain_percent / 100};
}

std::string sentence(const Contender& c, const JobPlan& plan) {
  Text text;
  if (c.job->mode == Mode::kRecommend && c.job->running)
    text << "Recommends " << Workers{plan.recommended} << " (has " << static_cast<long long>(plan.workers) << "). ";
  if (plan.admission.admit) {
    text << "Starts now on ";
    for (std::size_t i = 0; i < plan.admission.nodes.size(); ++i) {
      if (i > 0 && plan.admission.nodes[i] == plan.admission.nodes[i - 1]) continue;
      text << (i > 0 ? ", " : "") << plan.admission.nodes[i];
    }
  } else if (c.job->waiting && !c.job->running) {
    text << (c.job->waiting->admitted_elsewhere ? "Waits for its queue to admit it" : "Waits for its GPUs");
  } else {
    say_reason(c, plan, text);
    if (plan.estimate.confidence != Confidence::kNone && reason_has_figures(plan.reason)) say_figures(c, plan, text);
  }
  text << ".";
  return text.take();
}

}  // namespace

void explain(const Contender& c, double now_seconds, const NodeTable& nodes, const ProgressTable& curve,
             const Config& config, JobPlan& plan) {
  plan.metrics_problem = c.belief.metrics_problem;
  plan.metrics_usable = c.belief.metrics_problem.empty();
  plan.was_measured = c.belief.memory && c.belief.memory->was_measured;
  plan.unmeasured_seconds = c.belief.unmeasured_seconds;
  plan.memory = c.belief.memory;
  plan.estimate = estimate_of(c, now_seconds);
  if (c.belief.known) {
    plan.estimate.planned_supply_ratio = c.supply(c.local_millicores, plan.recommended);
    const double now = curve(plan.estimate.planned_supply_ratio);
    const double then = curve(c.supply(c.local_millicores, plan.recommended + 1));
    plan.next_worker_gain_percent = now > 0 ? 100 * (then / now - 1) : 100;
  }
  const Diagnosis diagnosis = diagnose(c, nodes, config);
  plan.bottleneck = diagnosis.bottleneck;
  if (!config.in_words) return;
  plan.evidence = evidence_of(diagnosis, c);
  plan.explanation = sentence(c, plan);
}

}  // namespace sluice::scheduler
