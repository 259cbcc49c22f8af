// What the metrics show of the truth: the only way from the simulation's state to a policy.
//
// A measurement is a window over a job's counters that ends metrics_age_seconds ago, with noise on every figure that a
// real exporter measures. The depth of the prefetch queue is a gauge, as it was when the window ended: it comes the
// same way as the counters. Only rivals look at it. The knee, the physics, the spec of a job and what will happen are
// not shown.
//
// Thread safety: pure functions, except that a Snapshots object serves one run.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/simulator/state.h"
#include "scheduler/snapshot.h"

namespace sluice::simulator {

// Remembers the counters at a change of the rates, with the gauges as they are from then on, and forgets what no window
// reaches any more.
void record_history(JobState& job, const Physics& physics);

scheduler::Observation observe(const JobState& job, double now_seconds, std::uint64_t seed, const Physics& physics);

// What a snapshot is made from, besides the state itself.
struct View {
  const std::vector<NodeState>& nodes;
  std::vector<JobState>& jobs;
  const std::vector<int>& active;  // running or waiting, by ascending index
  double now_seconds = 0;
  std::uint64_t seed = 0;
  bool metrics_lost = false;
  bool policy_admits = false;
  double cores_per_gpu = 0;  // what a trainer asks for
};

// Keeps the last snapshot and changes only what may have changed: with a thousand workers, copying names is most of the
// cost of a decision.
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
