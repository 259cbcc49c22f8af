// Failures, reclaimed nodes, and incidents that a scenario prescribes.
#include <algorithm>
#include <cmath>
#include <utility>

#include "scheduler/simulator/world/random.h"
#include "scheduler/simulator/world/run.h"
#include "scheduler/simulator/world/supply.h"

namespace sluice::simulator {

// Back to the queue, with the work since the last checkpoint lost.
void Run::fail_trainer(JobState& job) {
  advance(job, now_);
  cluster_.remove_trainer(job, now_);
  wake_for_workers(job);
  job.phase = Phase::kWaiting;
  ++job.restarts;
  ++job.version;
  job.done_seconds = std::floor(job.done_seconds / physics_.checkpoint_seconds) * physics_.checkpoint_seconds;
  const double epoch = epoch_seconds(*job.spec, physics_);
  if (epoch > 0) job.epoch = static_cast<int>(job.done_seconds / epoch + 1e-9);
  data_.leave(job.index);
  if (physics_.cost_change > 0)
    set_cost_step(job, static_cast<int>(job.done_seconds / physics_.cost_change_seconds + 1e-9));
  job.evaluation_ends_seconds = -1;
  job.history.clear();
  job.rates = {};
  if (options_.timeline)
    timelines_[job.index].push_back({.at_seconds = now_, .wanted_cores = job.knee_cores, .running = false});
  std::erase(running_, job.index);
  // It keeps its place in the queue.
  const auto arrived_earlier = [this](int a, int b) {
    return std::pair(jobs_[a].spec->arrival_seconds, a) < std::pair(jobs_[b].spec->arrival_seconds, b);
  };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), job.index, arrived_earlier), job.index);
  request_admission();
}

void Run::schedule_failure(int node, std::uint64_t times) {
  const bool spot = cluster_.nodes()[node].spot && physics_.spot_reclaim_hours > 0;
  const double hours = spot ? physics_.spot_reclaim_hours : physics_.node_failure_hours;
  if (hours <= 0) return;
  const Draw draw = spot ? Draw::kReclaim : Draw::kFailure;
  const double wait = 3600 * hours * exponential({options_.seed, draw, static_cast<std::uint64_t>(node), times});
  events_.push({now_ + wait, EventKind::kNodeDown, node, times});
}

void Run::node_down(int node, std::uint64_t times) {
  NodeState& state = cluster_.nodes()[node];
  const std::vector<int> trainers = state.trainers;
  for (const int index : trainers) fail_trainer(jobs_[index]);
  cluster_.lose_workers(node);
  ++state.down_reasons;
  state.up = false;
  decision_due_ = true;
  const double away =
      state.spot && physics_.spot_reclaim_hours > 0 ? physics_.spot_return_seconds : physics_.node_repair_seconds;
  events_.push({now_ + away, EventKind::kNodeUp, node, times + 1});
}

void Run::node_up(int node, std::uint64_t times) {
  NodeState& state = cluster_.nodes()[node];
  state.up = --state.down_reasons == 0;
  decision_due_ = true;
  request_admission();
  schedule_failure(node, times);
}

void Run::incident(const Incident& incident, bool begins) {
  decision_due_ = true;
  if (incident.kind == IncidentKind::kMetricsLost) {
    metrics_lost_ += begins ? 1 : -1;
    return;
  }
  for (int node = 0; node < static_cast<int>(cluster_.nodes().size()); ++node) {
    NodeState& state = cluster_.nodes()[node];
    if (state.name != incident.node) continue;
    if (incident.kind == IncidentKind::kCordon) {
      state.cordon_reasons += begins ? 1 : -1;
      state.cordoned = state.cordon_reasons > 0;
      if (begins) cluster_.lose_workers(node);  // a drain evicts data workers; trainers stay
      continue;
    }
    if (begins) {
      const std::vector<int> trainers = state.trainers;
      for (const int index : trainers) fail_trainer(jobs_[index]);
      cluster_.lose_workers(node);
    }
    state.down_reasons += begins ? 1 : -1;
    state.up = state.down_reasons == 0;
  }
  request_admission();
}

}  // namespace sluice::simulator
