// The metrics, made from the truth: the only way from the simulation's state to a policy.
//
// A measurement is a window over a job's counters that ends metrics_age_seconds ago, with noise on every figure that a
// real exporter measures. The depth of the prefetch queue is a gauge, as it was when the window ended: it comes the
// same way as the counters. Only baselines look at it. The knee, the physics, the spec of a job and the future are not
// shown.
//
// Thread safety: pure functions, except that a Snapshots object serves one run.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/model/snapshot.h"
#include "scheduler/simulator/world/state.h"

namespace sluice::simulator {

// Remembers the counters at a change of the rates, with the gauges as they are from then on. Forgets entries that no
// window reaches any more.
void record_history(JobState& job, const Physics& physics);

scheduler::Observation observe(const JobState& job, double now_seconds, std::uint64_t seed, const Physics& physics);

// The inputs of a snapshot besides the state itself.
struct View {
  const std::vector<NodeState>& nodes;
  std::vector<JobState>& jobs;
  const std::vector<int>& active;  // running or waiting, by ascending index
  double now_seconds = 0;
  std::uint64_t seed = 0;
  bool metrics_lost = false;
};

// Keeps the last snapshot and updates only parts that may have changed. With a thousand workers, copying names would be
// most of the cost of a decision.
class Snapshots {
 public:
  explicit Snapshots(const Physics& physics) : physics_(physics) {}

  const scheduler::ClusterSnapshot& take(const View& view);

 private:
  scheduler::Job waiting_job(const View& view, JobState& state) const;
  void fill_job(const View& view, JobState& state, scheduler::Job& job) const;

  const Physics& physics_;
  scheduler::ClusterSnapshot snapshot_;
  std::vector<int> slots_;  // index of the job in each entry of snapshot_.jobs
};

}  // namespace sluice::simulator
