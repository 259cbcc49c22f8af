// One run: a workload on a cluster under a policy, from the first arrival to the last finish.
//
// Event-driven fluid model: between two events every job progresses at a constant rate. An event changes grants, supply
// or demand. Then the rates that depend on it are computed anew, and the next milestone of each job is predicted.
// All events of one moment are handled before waiting trainers start, and trainers start before the decision.
//
// Deterministic: the same cluster, workload, policy and seed give the same record on every machine. Failures, changes
// of a sample's cost and noise depend on the seed and on the object, not on the policy's actions. So all policies meet
// the same weather, and are compared pairwise.
//
// Thread safety: simulate() may run in several threads, each with a policy of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/policy.h"
#include "scheduler/simulator/world/cluster.h"
#include "scheduler/simulator/world/data_cache.h"
#include "scheduler/simulator/world/simulated_cluster.h"
#include "scheduler/simulator/world/workload.h"
#include "src/base/result.h"

namespace sluice::simulator {

enum class IncidentKind { kNodeDown, kCordon, kMetricsLost };

// An event at a given time, the same with every seed.
struct Incident {
  IncidentKind kind = IncidentKind::kNodeDown;
  std::string node;  // of kNodeDown and kCordon
  double at_seconds = 0;
  double for_seconds = 0;
};

struct RunOptions {
  std::uint64_t seed = 1;
  std::vector<Incident> incidents;
  bool timeline = false;
  double most_seconds = 1e8;  // of simulated time
};

inline constexpr double kFast = 0.9;

// A job's grants and speed from at_seconds on.
struct TimelineStep {
  double at_seconds = 0;
  double speed = 0;
  double local_cores = 0;
  double remote_cores = 0;
  double wanted_cores = 0;  // its knee
  bool running = true;      // false: its node has failed, and it waits for another one
};

struct JobRecord {
  double start_seconds = 0;
  double fast_seconds = -1;  // moment at which it ran at kFast of full speed for the first time; < 0: never
  double finish_seconds = 0;
  double busy_gpu_seconds = 0;                 // work that was lost and done again counts twice
  double busy_gpu_seconds_while_arriving = 0;  // until the last job of the workload arrived
  double allocated_gpu_seconds = 0;
  double core_seconds = 0;
  double worker_core_seconds = 0;  // of these, of its data workers
  int workers_started = 0;
  int allocation_changes = 0;
  int restarts = 0;
  double requeued_seconds = 0;  // for which it waited for another node, after its own had failed
  DataReads reads;              // of its data set
  std::vector<TimelineStep> timeline;

  // Without any wait for GPUs.
  double running_seconds() const { return finish_seconds - start_seconds - requeued_seconds; }
};

struct RunRecord {
  std::string policy;
  std::vector<JobRecord> jobs;  // in the order of the workload
  double makespan_seconds = 0;  // from time 0
  double decide_seconds = 0;    // CPU time spent in the policy
  double cpu_seconds = 0;       // of the whole run
  // The table of docs/simulator.md, "Counted events", says what counts as one.
  std::int64_t events = 0;
  std::int64_t decisions = 0;
  std::int64_t overcommitted_steps = 0;  // steps at which a node's requests exceeded its CPU: always 0
  PlacementCounts placement;
  CacheRule cache = CacheRule::kNone;
  bool keeps_orders = true;  // each job had the samples in its own order
};

// Errors: InvalidArgument when a job can never start, or an incident names no node; DeadlineExceeded past most_seconds.
Result<RunRecord> simulate(const Cluster& cluster, const Workload& workload, scheduler::Policy& policy,
                           const RunOptions& options);

}  // namespace sluice::simulator
