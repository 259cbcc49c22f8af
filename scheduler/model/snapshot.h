// The input of the scheduler: one immutable picture of the cluster, built by the operator's observe step.
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

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/arrivals.h"
#include "scheduler/model/crowding.h"
#include "scheduler/model/interference.h"
#include "scheduler/model/job_id.h"
#include "scheduler/model/neighbour_guard.h"
#include "scheduler/model/tracked.h"

namespace sluice::scheduler {

// In place of the number of a domain.
constexpr int kNoDomain = -1;

// A cluster node, reduced to the resources that data work can use.
struct Node {
  std::string name;
  std::int64_t allocatable_millicores = 0;
  // CPU requests of the pods that are bound to the node and have not finished: trainers, system pods, feeders of fixed
  // CPU. Not counted: data workers, and feeders whose CPU the plan sets (Job::local_adjustable).
  std::int64_t requested_by_others_millicores = 0;
  // False: cordoned or not ready. Workers that are there stay; none is added.
  bool schedulable = true;
  // Nodes that no job's workers tell apart, by taints and labels, share a group. Numbered from 0.
  int group = 0;
  // The number of the node's domain, by SpreadRule::topology; kNoDomain: it has none. Beyond the end: kNoDomain.
  std::vector<int> domains = {};

  int gpus = 0;  // allocatable
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
  // Told to stop. It answers its last requests and leaves: its room counts as free, and it is no supply.
  bool draining = false;
};

// Work done by one kind of executor during an observation window.
struct SourceRate {
  double samples_per_second = 0;
  double busy_cores = 0;  // CPU seconds that executor threads spent, per second of wall time
};

// Batches of a job's prefetch queues, over all ranks.
struct PrefetchQueue {
  double depth = 0;     // ready for the training loops, >= 0
  double capacity = 0;  // asked for ahead, > 0
};

// The metrics of a job over one window, taken from counters by rate().
struct Measurement {
  // When the queries were evaluated: tells a new measurement from an old one.
  double window_end_seconds = 0;
  double window_seconds = 0;      // how far the queries look back
  double samples_per_second = 0;  // consumed by the training loops of all ranks
  // The training loops' own accounting, as a mean over ranks: seconds per second of wall time. Their sum may be below
  // 1: evaluation, checkpoints and the time before the first step belong to neither.
  double compute_share = 0;
  double wait_share = 0;
  double batches_in_window = 0;  // of all ranks
  // Per executor placement; none when the series does not exist (for example: no remote worker has worked yet).
  std::optional<SourceRate> local;
  std::optional<SourceRate> remote;
  // Data workers that had finished samples before the window began, and are still there. A Python worker is ready long
  // before it has imported its pipeline. None: not known, and ready workers count as at work.
  std::optional<double> workers_at_work;
  // Executors, local and remote, that had a batch in hand and neither ran nor waited for a CPU: they waited for data to
  // read. On average over the window. None: not known.
  std::optional<double> blocked_threads;
  // On average over the window. Where half of the batches lie ready, a trainer that waits does not lack supply. None:
  // not known.
  std::optional<PrefetchQueue> queue;
  // Bytes that executors took from files and object stores over samples that they finished: what caches served is no
  // part of it. None: not known.
  std::optional<double> read_bytes_per_sample;
};

// A measurement, or why there is none.
struct Observation {
  std::optional<Measurement> measurement;
  std::string missing_reason;  // one sentence for people; empty when measurement is set
};

// A job's CPU and speed over a window in which nothing changed.
struct GrowthRecord {
  double remote_cores = 0;
  double supply_cores = 0;  // local-equivalent, of all that worked for it
  double samples_per_second = 0;

  friend bool operator==(const GrowthRecord&, const GrowthRecord&) = default;
};

// A job's CPU and speed while its executors waited for what they read; see estimate/read_limit.h.
struct ReadLimit {
  double supply_cores = 0;  // local-equivalent, held
  double samples_per_second = 0;
  int proofs = 0;  // in a row: another supply gave the same speed
  double proven_at_seconds = 0;

  friend bool operator==(const ReadLimit&, const ReadLimit&) = default;
};

// Windows since the workers in force last changed, all of them at work.
struct SteadySpell {
  int workers = 0;
  int windows = 0;             // that do not overlap
  double wait_share = 0;       // mean over the last of them
  double through_seconds = 0;  // window_end_seconds of the newest

  friend bool operator==(const SteadySpell&, const SteadySpell&) = default;
};

// The CPU that is requested for the job's feeders.
struct FeederSpell {
  double cores = 0;          // when the spell began; it ends with a change by more than a tenth
  double since_seconds = 0;  // of the decision that saw it first; 0: it has been so from the beginning

  friend bool operator==(const FeederSpell&, const FeederSpell&) = default;
};

// The estimator's memory from one decision to the next. The caller stores Estimate::memory and hands it back in the
// next snapshot; without it (operator restart, new job) estimation starts again from the next measurement. See
// estimator.h.
struct EstimatorMemory {
  double demand_samples_per_second = 0;
  std::optional<Tracked> local_rate_per_core;  // samples/s per busy core; none: never measured
  std::optional<Tracked> remote_rate_per_core;
  std::optional<Tracked> knee_cores;             // local-equivalent cores that saturate the job
  std::optional<Tracked> read_bytes_per_sample;  // at least 1; none: never measured
  double feedback = 1;                           // correction of the knee by its effect, in [1/8, 8]
  double feedback_floor = 0;                     // a correction below this was tried, and starved the job
  double folded_through_seconds = 0;             // window_end_seconds of the newest measurement taken in
  SteadySpell steady;                            // since the last change of `feedback`
  std::optional<FeederSpell> feeders;            // none: the job has not been seen running
  std::optional<double> starved_since_seconds;   // window_end_seconds of the first measurement in a row that shows it
  // Before the last growth that has not been judged yet; see estimator.h.
  std::optional<GrowthRecord> before_growth;
  std::optional<double> useless_above_cores;       // remote cores beyond this number were tried, and brought no speed
  double useless_since_seconds = 0;                // window_end_seconds of that finding
  std::optional<ReadLimit> reads;                  // none: they do not wait for it
  Interference interference;                       // of the feeders with their trainer
  NeighbourGuard neighbours;                       // of other jobs' feeders with it
  CrowdingMeans crowding_means;                    // its steps where feeders keep to their share, and where not
  Crowding crowding;                               // what all jobs show of that; the newest one counts
  Arrivals arrivals;                               // of its measurements
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
  kRecommend,  // the plan only recommends; a person or another controller sets the number
  kOff,        // the number stays as it is
};

// A rule that spreads the workers of a job over the domains of a topology. A domain is the nodes of a zone, say, or a
// node by itself. It takes a worker if it then holds at most `most_ahead` more than the least of the counted domains.
struct SpreadRule {
  int topology = 0;
  int most_ahead = 1;
  // By number. Domains beyond the end do not count. Where none does, the least is 0.
  std::vector<bool> counted_domains;
  bool closed_outside = false;  // nodes without a domain take no worker
};

// A node on which trainer pods of the job run, and their feeders.
struct TrainerHost {
  std::string node;  // empty: not known; its CPU counts as local, but belongs to no node of the snapshot
  int ranks = 1;     // of the job, on this node
  int gpus = 0;      // of the job, on this node
  // CPU of the feeders there now, all together. As in Kubernetes the request is guaranteed, and idle CPU of the node
  // may be used up to the limit.
  std::int64_t request_millicores = 0;
  std::int64_t limit_millicores = 0;
};

// What the cache of a node has kept of a job's data.
struct KeptData {
  std::string node;
  double bytes = 0;
};

struct Job {
  JobId id;
  bool running = false;  // the trainer has started, has not finished and is not suspended
  std::string quota;     // name of the ClusterSnapshot::quotas entry it counts against; empty: none

  int ranks = 1;
  int gpus = 0;
  int weight = 100;                         // 1..10000; 100 is normal
  int priority = 0;                         // higher first, strictly
  std::optional<double> remaining_samples;  // that its training loops will still take, where they say so

  Mode mode = Mode::kAuto;
  Placement placement = Placement::kAuto;
  int min_workers = 0;
  int max_workers = 0;
  // A scheduling gate, such as Kueue's, holds workers back: max_workers is what it let through, and a few that ask.
  bool held_at_gate = false;
  std::int64_t worker_millicores = 1000;   // CPU request of one worker, > 0
  std::int64_t worker_memory_bytes = 0;    // memory request of one worker
  std::optional<double> bytes_per_sample;  // that a remote worker sends
  std::string storage;                     // name of the ClusterSnapshot::storages entry that it reads; empty: none
  // By Node::group. True: taints, or the worker's node selector and affinity, close its nodes to new workers of the
  // job. Groups beyond the end take them.
  std::vector<bool> closed_groups;
  std::vector<SpreadRule> spread;  // for new workers; those that are there stay
  std::vector<KeptData> kept;      // of other nodes it is not known, or there is nothing

  std::vector<TrainerHost> hosts;  // empty while it is not running
  // True: JobPlan::local sets the feeders' CPU. False: it is fixed, and the plan leaves it.
  bool local_adjustable = false;

  // The number of workers in force: spec.replicas of the job's DataWorkerPool. Pods that are lost or not created yet
  // make `workers` differ from it for a while; decisions build on this number.
  int allocated_workers = 0;
  std::vector<Worker> workers;

  Observation observation;
  std::optional<EstimatorMemory> memory;
};

// Upper bounds on the workers of all jobs that name it. The operator has one for each namespace that has a bound.
struct Quota {
  std::string name;
  std::optional<std::int64_t> worker_millicores;  // CPU of their data workers
  std::optional<double> budget_per_hour;          // as ClusterSnapshot::budget_per_hour, of their data workers
};

// What several jobs read their data from.
struct Storage {
  std::string name;
  double bytes_per_second = 0;  // that all jobs together may read from it
};

// REQUIRES: job ids, node names, quota names, storage names, and worker names within a job are unique.
struct ClusterSnapshot {
  double taken_at_seconds = 0;
  std::vector<Node> nodes;
  std::vector<Job> jobs;
  std::vector<Quota> quotas;
  // What all data workers together may cost, at the price of the part of a node that each of them takes.
  std::optional<double> budget_per_hour;
  std::vector<Storage> storages = {};
};

// In the order of Plan::jobs. Lifetime: refers to the jobs.
std::vector<const Job*> jobs_by_id(const ClusterSnapshot& snapshot);

// In the order of their names, so that positions mean the same for every permutation. Lifetime: refers to the nodes.
std::vector<const Node*> nodes_by_name(const std::vector<Node>& nodes);

// CPU request of one data worker.
inline double worker_cores(const Job& job) { return static_cast<double>(job.worker_millicores) / 1000; }

// Whether the node takes new workers of the job, as far as there is room.
inline bool takes_new_workers(const Node& node, const Job& job) {
  const auto group = static_cast<std::size_t>(node.group);
  return node.schedulable && (group >= job.closed_groups.size() || !job.closed_groups[group]);
}

// CPU that the feeders of all trainer pods may use together.
std::int64_t local_limit_millicores(const Job& job);

}  // namespace sluice::scheduler
