// The simulated cluster: it starts trainers, starts and stops workers, and carries out plans.
//
// Invariants, kept under every plan
//   1. On no node do requests exceed its CPU; requests that do not fit are cut, and counted.
//   2. A trainer starts with its GPU-proportional share of its hosts' CPU: workers there are preempted, and other
//      trainers' CPU beyond their own shares is cut, as Kubernetes preempts pods of lower priority.
//
// Thread safety: none; one object serves one run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/name_index.h"
#include "scheduler/model/plan.h"
#include "scheduler/simulator/world/state.h"

namespace sluice::simulator {

struct PlacementCounts {
  int workers_started = 0;  // that found a node: asking for one that stays pending starts nothing
  int workers_stopped = 0;
  int workers_preempted = 0;
  int requests_cut = 0;  // times a plan asked a node for more than it had
};

class SimulatedCluster {
 public:
  SimulatedCluster(const Cluster& cluster, std::vector<JobState>& jobs);

  std::vector<NodeState>& nodes() { return nodes_; }
  const std::vector<NodeState>& nodes() const { return nodes_; }
  const PlacementCounts& counts() const { return counts_; }

  // The hosts for a gang: one node where it fits on one, the one with the fewest free GPUs; otherwise nodes without
  // trainers. Empty: it does not fit now.
  std::vector<HostState> find_hosts(int gpus) const;

  void start_trainer(JobState& job, std::vector<HostState> hosts, double now_seconds);
  // Takes away GPUs and local CPU, and tells all workers to stop: they hold their CPU while they drain.
  void remove_trainer(JobState& job, double now_seconds);

  // Sets local CPU and workers as planned. All shrinking comes before any growth. Returns whether anything changed.
  bool apply(const scheduler::Plan& plan, const std::vector<int>& active, double now_seconds);

  // Workers whose drain is over give their room back; those that wait for room take it where there is some.
  void settle_workers(JobState& job, double now_seconds);
  // All workers on the node are lost. Trainers are the caller's business.
  void lose_workers(int node);

  // GPU-proportional share of a node's CPU for so many of its GPUs. REQUIRES: it has GPUs
  std::int64_t share_millicores(int node, int gpus) const;

 private:
  void set_local(JobState& job, HostState& host, std::int64_t request, std::int64_t limit);
  bool shrink_local(JobState& job, const scheduler::JobPlan& plan);
  bool grow_local(JobState& job, const scheduler::JobPlan& plan);
  void stop(JobState& job, WorkerState& worker, double now_seconds);
  bool stop_surplus(JobState& job, const scheduler::JobPlan& plan, int surplus, double now_seconds);
  bool start_missing(JobState& job, const scheduler::JobPlan& plan, int missing, double now_seconds);
  void touch(int node);  // workers came or went: trainers that may use idle CPU, or suffer, get new rates
  bool bind(JobState& job, WorkerState& worker, int node, double now_seconds);
  int node_with_room(std::int64_t millicores) const;
  void make_room(int node, std::int64_t millicores);

  const Cluster& cluster_;
  std::vector<JobState>& jobs_;
  std::vector<NodeState> nodes_;
  scheduler::NameIndex node_by_name_;
  PlacementCounts counts_;
};

}  // namespace sluice::simulator
