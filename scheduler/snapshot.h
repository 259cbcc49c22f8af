// What the scheduler sees: one immutable picture of the cluster, built by the operator's observe step.
//
// Conventions
//   CPU        integer millicores, so that capacity sums are exact. Measured rates are doubles.
//   times      unix seconds. The scheduler reads no clock: "now" is ClusterSnapshot::taken_at_seconds, and ages are
//              differences.
//   unknown    std::optional. Nothing unknown is ever written as zero.
//   order      the order of nodes, jobs and workers carries no meaning; decide() gives the same plan for every
//              permutation.
//   feeder     executes data work inside a trainer pod ("local"); a data worker does so in a pod of its own ("remote").
//
// Thread safety: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/tracked.h"

namespace sluice::scheduler {

struct JobId {
  std::string job_namespace;
  std::string name;

  friend auto operator<=>(const JobId&, const JobId&) = default;
};

// A cluster node, reduced to what data work can use of it and what a trainer needs to start there.
struct Node {
  std::string name;
  std::int64_t allocatable_millicores = 0;
  // CPU requests of every pod that is bound to the node and has not finished, except data workers and those feeders
  // whose CPU the plan sets (Job::local_adjustable): trainers, other feeders, system pods.
  std::int64_t requested_by_others_millicores = 0;
  // False: cordoned, not ready, or tainted against data workers. Workers that are there stay; none is added.
  bool schedulable = true;

  int gpus = 0;         // allocatable
  int gpus_in_use = 0;  // by anybody, the trainers of this snapshot included
  // Kept free of data workers, for trainers yet to come. Feeders may use it: they leave with their trainer.
  std::int64_t guarded_millicores = 0;
  // For data workers, as above for CPU; none: memory is not counted on this node.
  std::optional<std::int64_t> free_memory_bytes;
  std::optional<double> network_bytes_per_second;  // each way; none: no limit is known
  double price_per_hour = 0;                       // of the whole node
  bool spot = false;                               // may be reclaimed at any time
};

// A data-worker pod of a job.
struct Worker {
  std::string name;
  std::string node;  // empty while the pod is not bound to a node
  bool ready = false;
  double created_at_seconds = 0;
  double ready_since_seconds = 0;  // meaningful only when ready
  // Told to stop. It answers what it has and leaves, so it is neither supply nor an obstacle: its room counts as free.
  bool draining = false;
};

// Work done by one kind of executor during an observation window.
struct SourceRate {
  double samples_per_second = 0;
  double busy_cores = 0;  // CPU seconds that executor threads spent, per second of wall time
};

// What the metrics say about a job over one window, taken from counters by rate().
struct Measurement {
  double window_end_seconds =
      0;                      // unix time at which the queries were evaluated; tells a new measurement from an old one
  double window_seconds = 0;  // how far the queries look back
  double samples_per_second = 0;  // consumed by the training loops of all ranks
  // The training loops' own accounting, as a mean over ranks: seconds per second of wall time. Their sum may be below
  // 1: evaluation, checkpoints and the time before the first step belong to neither.
  double compute_share = 0;
  double wait_share = 0;
  double batches_in_window = 0;  // of all ranks
  // Per executor placement; none when the series does not exist (for example: no remote worker has worked yet).
  std::optional<SourceRate> local;
  std::optional<SourceRate> remote;
  // Data workers that had finished samples before the window began, and are still there. A worker of a Python pipeline
  // is ready long before it has imported it. None: it is not known, those that are ready count as at work.
  std::optional<double> workers_at_work;
  // Threads that are blocked in reads of the storage, on average over the window, local and remote.
  std::optional<double> reading_threads;
  // Prefetch queue, batches over all ranks, on average over the window: ready, and asked for. Where half of them lie
  // ready, what a trainer waits is no lack of supply. 0 of 0: not known.
  double queue_depth = 0;
  double queue_capacity = 0;
};

// A measurement, or why there is none.
struct Observation {
  std::optional<Measurement> measurement;
  std::string missing_reason;  // one sentence for people; empty when measurement is set
};

// What a job had and did over a window in which nothing changed.
struct GrowthRecord {
  double remote_cores = 0;
  double supply_cores = 0;  // local-equivalent, of all that worked for it
  double samples_per_second = 0;

  friend bool operator==(const GrowthRecord&, const GrowthRecord&) = default;
};

// What the estimator carries from one decision to the next. The caller stores JobPlan::memory and hands it back in the
// next snapshot; without it (operator restart, new job) estimation starts again from the next measurement. See
// estimator.h.
struct EstimatorMemory {
  double demand_samples_per_second = 0;
  std::optional<Tracked> local_rate_per_core;  // samples/s per busy core; none: never measured
  std::optional<Tracked> remote_rate_per_core;
  std::optional<Tracked> knee_cores;  // local-equivalent cores that saturate the job
  double feedback = 1;                // correction of the knee by its effect, in [1/8, 8]
  double feedback_floor = 0;          // a correction below this was tried, and starved the job
  double folded_through_seconds = 0;  // window_end_seconds of the newest measurement taken in
  double corrected_at_seconds = 0;    // window_end_seconds of the last change of `feedback`
  // Before the last growth that has not been judged yet; see estimator.h.
  std::optional<GrowthRecord> before_growth;
  std::optional<double> useless_above_cores;       // remote cores beyond this number were tried, and brought no speed
  double useless_since_seconds = 0;                // window_end_seconds of that finding
  bool was_measured = false;                       // by anything usable, be it too little to estimate from
  std::optional<double> unmeasured_since_seconds;  // the first decision in a row without a usable measurement

  friend bool operator==(const EstimatorMemory&, const EstimatorMemory&) = default;
};

enum class Placement {
  kAuto,    // the feeder's own CPU first, remote workers for the rest
  kLocal,   // never remote workers
  kRemote,  // the feeder's CPU is not counted on
};

enum class Mode {
  kAuto,       // the plan sets the number of workers
  kRecommend,  // the plan only recommends; somebody else sets the number
  kOff,        // the number stays as it is
};

// A node on which trainer pods of the job run, and their feeders.
struct TrainerHost {
  std::string node;  // empty: not known; its CPU counts as local, but belongs to no node of the snapshot
  int ranks = 1;     // of the job, on this node
  int gpus = 0;      // of the job, on this node
  // CPU of the feeders there now, all together, as in Kubernetes: the request is guaranteed, idle CPU of the node may
  // be used up to the limit.
  std::int64_t request_millicores = 0;
  std::int64_t limit_millicores = 0;
};

// A trainer that waits for its GPUs, all of its ranks at once.
struct Waiting {
  double since_seconds = 0;
  int gpus_per_rank = 0;
  std::int64_t millicores_per_rank = 0;  // CPU request of a trainer pod, its feeder's included
  bool admitted_elsewhere = false;       // by Kueue, as a queue name is set: the plan does not admit it
};

struct Job {
  JobId id;
  bool running = false;            // the trainer has started, has not finished and is not suspended
  std::optional<Waiting> waiting;  // set: it wants to start. Neither running nor waiting: suspended or finished
  std::string quota;               // name of the ClusterSnapshot::quotas entry it counts against; empty: none

  int ranks = 1;
  int gpus = 0;
  int weight = 100;                         // 1..10000; 100 is normal
  int priority = 0;                         // higher first, strictly
  std::optional<double> remaining_seconds;  // to completion at full speed, when known

  Mode mode = Mode::kAuto;
  Placement placement = Placement::kAuto;
  int min_workers = 0;
  int max_workers = 0;
  std::int64_t worker_millicores = 1000;   // CPU request of one worker, > 0
  std::int64_t worker_memory_bytes = 0;    // memory request of one worker
  std::optional<double> bytes_per_sample;  // that a remote worker sends

  std::vector<TrainerHost> hosts;  // empty while it is not running
  // False: somebody else has fixed the feeders' CPU, and the plan leaves it. True: JobPlan::local sets it.
  bool local_adjustable = false;

  // The number of workers in force: spec.replicas of the job's DataWorkerPool. Pods that are lost or not created yet
  // make `workers` differ from it for a while; decisions build on this number.
  int allocated_workers = 0;
  std::vector<Worker> workers;

  Observation observation;
  std::optional<EstimatorMemory> memory;
};

// An upper bound on what the jobs that name it hold together.
struct Quota {
  std::string name;
  std::optional<std::int64_t> worker_millicores;  // CPU of their data workers
  std::optional<int> gpus;                        // of their trainers; bounds admission
};

// REQUIRES: job ids, node names, quota names, and worker names within a job are unique.
struct ClusterSnapshot {
  double taken_at_seconds = 0;
  std::vector<Node> nodes;
  std::vector<Job> jobs;
  std::vector<Quota> quotas;
  // What all data workers together may cost, at the price of the part of a node that each of them takes.
  std::optional<double> budget_per_hour;
};

// CPU that the feeders of all trainer pods may use together.
std::int64_t local_limit_millicores(const Job& job);

}  // namespace sluice::scheduler
