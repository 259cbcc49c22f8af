#include "scheduler/decide/explain.h"

#include <algorithm>
#include <cmath>

#include "scheduler/decide/diagnosis.h"
#include "scheduler/decide/wording.h"
#include "scheduler/model/progress.h"

namespace sluice::scheduler {
namespace {

double supply_now(const JobAllocation& allocation, double now_seconds) {
  const Estimate& estimate = *allocation.estimate;
  const double local_cores = allocation.adjustable ? estimate.local_held_cores : estimate.local_cores;
  return (local_cores + estimate.efficiency() * ready_cores(*allocation.job, now_seconds)) /
         std::max(estimate.knee_cores, 1e-9);
}

// The binding constraint, in words. The wanted and the planned number follow where they are known.
void say_reason(const JobAllocation& allocation, const NodeTable& nodes, const JobPlan& plan, Text& text) {
  const Workers workers{plan.recommended};
  const Percent waits{allocation.estimate->wait_share};
  switch (plan.reason) {
    case Reason::kNotRunning: text << "Not running: no data workers"; break;
    case Reason::kModeOff: text << "Mode Off: left at " << workers; break;
    case Reason::kPlacementLocal:
      text << "All data work stays in the trainer's pods, by placement Local or because no worker can read the data";
      break;
    case Reason::kNoMetrics: text << "Holding " << workers << ": " << allocation.estimate->metrics_problem; break;
    case Reason::kMetricsFallback:
      text << "Measured jobs go first, and leave it " << workers << ": " << allocation.estimate->metrics_problem;
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
    case Reason::kMax:
      text << (allocation.job->held_at_gate ? "A scheduling gate, such as Kueue's," : "max") << " limits it to "
           << workers;
      break;
    case Reason::kCpu:
      if ((allocation.groups & nodes.usable_groups()) == 0)
        text << "No node takes its workers, by their node selector, affinity and tolerations: " << workers;
      else
        text << "No node has room for more than " << workers;
      break;
    case Reason::kNoEffect: text << "More workers were tried and brought no speed: " << workers << " stay"; break;
    case Reason::kStorage:
      if (allocation.blocked == Reason::kStorage) {
        text << "Storage " << allocation.job->storage << " limits it to " << workers
             << ": other jobs have the rest of its bandwidth";
        break;
      }
      text << "The trainer waits " << waits << " of its time for data, and its executors for storage: " << workers;
      break;
    case Reason::kQuota: text << "Quota " << allocation.job->quota << " limits it to " << workers; break;
    case Reason::kBudget:
      text << "The budget ";
      if (allocation.by_quotas_budget) text << "of " << allocation.job->quota << " ";
      text << "limits it to " << workers;
      break;
    case Reason::kNetwork: text << "The network limits it to " << workers; break;
    case Reason::kSpread: text << "Anti-affinity or topology spread of its workers limits it to " << workers; break;
    case Reason::kFlat: text << "More than " << workers << " would not be worth the price"; break;
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
void say_figures(const JobAllocation& allocation, const JobPlan& plan, Text& text) {
  const Estimate& e = *allocation.estimate;
  text << "; it wants " << Number{e.demand_samples_per_second} << " samples/s, which takes "
       << Number{std::round(1000 * e.knee_cores) / 1000} << " cores at " << Number{e.local_rate_per_core}
       << " samples/s per core, ";
  if (allocation.adjustable) {
    text << Number{static_cast<double>(allocation.local_millicores) / 1000} << " cores beside it";
    if (plan.recommended > 0)
      text << " and " << Workers{plan.recommended} << " of "
           << static_cast<long long>(allocation.job->worker_millicores) << "m";
    text << " bring supply to " << Percent{plan.planned_supply_ratio} << " of that";
  } else if (plan.recommended == 0) {
    text << "without workers supply is " << Percent{plan.planned_supply_ratio} << " of that";
  } else {
    text << Workers{plan.recommended} << " of " << static_cast<long long>(allocation.job->worker_millicores) << "m"
         << (plan.recommended == 1 ? " brings" : " bring") << " supply to " << Percent{plan.planned_supply_ratio}
         << " of that";
  }
  text << ", one more would bring " << Percent{plan.next_worker_gain_percent / 100};
  if (allocation.adjustable && allocation.estimate->local_cap_cores)
    text << "; more than " << Number{*allocation.estimate->local_cap_cores}
         << " cores beside it slowed its own steps down";
}

// Names of other namespaces are none of this job's business.
void say_job(const JobId& other, const JobAllocation& allocation, Text& text) {
  if (other.job_namespace == allocation.job->id.job_namespace)
    text << other.name;
  else
    text << "a job of another namespace";
}

// The tightest cap of its feeders for the sake of another trainer.
const HostShare* capped_host(const JobAllocation& allocation) {
  const HostShare* tightest = nullptr;
  for (const HostShare& host : allocation.hosts)
    if (host.guarded != nullptr && (!tightest || host.cap < tightest->cap)) tightest = &host;
  return tightest;
}

// Where feeders have all of their share, and no more.
const HostShare* kept_host(const JobAllocation& allocation) {
  for (const HostShare& host : allocation.hosts)
    if (host.keeps_to_share && host.cap == host.share && host.granted == host.cap) return &host;
  return nullptr;
}

// "; it has at most 0.5 cores beside it on node-1: more CPU of feeders there slowed the steps of text down by 12 %"
void say_neighbours(const JobAllocation& allocation, double now_seconds, const NodeTable& nodes, const Config& config,
                    Text& text) {
  if (const HostShare* host = capped_host(allocation)) {
    const JobAllocation& trainer = *host->guarded;
    text << "; it has at most " << Number{static_cast<double>(host->cap) / 1000} << " cores beside it on "
         << nodes.name(host->node) << ": more CPU of feeders there slowed the steps of ";
    say_job(trainer.job->id, allocation, text);
    text << " down by " << Percent{trainer.estimate->memory->neighbours.cap->rise};
  }
  if (const HostShare* host = kept_host(allocation); host && allocation.estimate->memory) {
    const Crowding& crowding = allocation.estimate->memory->crowding;
    text << "; its feeders keep to their share of " << nodes.name(host->node) << ", "
         << Number{static_cast<double>(host->share) / 1000} << " cores";
    if (crowding.verdict == Crowding::Verdict::kHarmful)
      text << ": more makes the steps of trainers " << Percent{crowding.rise()} << " longer";
    else
      text << ", for at most five minutes, to see whether more makes the steps of trainers longer";
  }
  if (!allocation.estimate->memory || !allocation.estimate->memory->neighbours.holds(now_seconds, config)) return;
  const NeighbourCap& cap = *allocation.estimate->memory->neighbours.cap;
  text << "; more CPU of feeders of ";
  say_job(cap.most_grown, allocation, text);
  text << " on " << cap.at_node << " slowed its own steps down by " << Percent{cap.rise}
       << ", and is taken back for ten minutes";
}

// "; 2 of 3 workers are where the node's cache has its data"
void say_data(const JobAllocation& allocation, Text& text) {
  if (allocation.near_data.empty() || allocation.occupied.empty()) return;
  const auto near = std::count_if(allocation.occupied.begin(), allocation.occupied.end(), [&](int node) {
    return std::binary_search(allocation.near_data.begin(), allocation.near_data.end(), node);
  });
  text << "; " << static_cast<long long>(near) << " of " << Workers{static_cast<int>(allocation.occupied.size())}
       << (near == 1 ? " is" : " are") << " where the node's cache has its data";
}

// " It is held up by its storage: waits 60 %; 7 threads blocked in reads. What helps: faster storage." What was learnt
// of the storage counts more than what the last window shows.
void say_remedy(const JobPlan& plan, Text& text) {
  if (plan.bottleneck == Bottleneck::kDataBoundStorage)
    text << " It is held up by its storage: " << plan.evidence << ".";
  else if (plan.bottleneck == Bottleneck::kDataBoundNetwork)
    text << " It is held up by the network: " << plan.evidence << ".";
  const bool is_learnt = plan.reason == Reason::kStorage;
  const std::string_view remedy = remedy_of(is_learnt ? Bottleneck::kDataBoundStorage : plan.bottleneck);
  if (!remedy.empty()) text << " What helps: " << remedy << ".";
}

std::string sentence(const JobAllocation& allocation, double now_seconds, const NodeTable& nodes, const Config& config,
                     const JobPlan& plan) {
  Text text;
  if (allocation.job->mode == Mode::kRecommend && allocation.job->running)
    text << "Recommends " << Workers{plan.recommended} << " (has " << static_cast<long long>(plan.workers) << "). ";
  say_reason(allocation, nodes, plan, text);
  if (allocation.estimate->confidence != Confidence::kNone && reason_has_figures(plan.reason))
    say_figures(allocation, plan, text);
  say_data(allocation, text);
  if (allocation.job->running) say_neighbours(allocation, now_seconds, nodes, config, text);
  text << ".";
  say_remedy(plan, text);
  return text.take();
}

}  // namespace

void explain(const JobAllocation& allocation, double now_seconds, const NodeTable& nodes, const ProgressTable& curve,
             const Config& config, JobPlan& plan) {
  if (allocation.estimate->known) {
    plan.supply_ratio = supply_now(allocation, now_seconds);
    plan.planned_supply_ratio = allocation.supply(allocation.local_millicores, plan.recommended);
    const double now = curve(plan.planned_supply_ratio);
    const double then = curve(allocation.supply(allocation.local_millicores, plan.recommended + 1));
    plan.next_worker_gain_percent = now > 0 ? 100 * (then / now - 1) : 100;
  }
  const Diagnosis diagnosis = diagnose(allocation, nodes, config);
  plan.bottleneck = diagnosis.bottleneck;
  if (!config.in_words) return;
  plan.evidence = evidence_of(diagnosis, allocation);
  plan.explanation = sentence(allocation, now_seconds, nodes, config, plan);
}

}  // namespace sluice::scheduler
