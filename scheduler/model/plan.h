// The number of data workers and the feeders' CPU of every job, and why: the result of decide().
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/model/estimate.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// What limits the job's training speed now.
enum class Bottleneck {
  kUnknown,           // no usable metrics
  kNotDataBound,      // the trainer hardly waits, and the data work has CPU to spare
  kGpuBound,          // the trainer practically never waits: the accelerator sets the pace
  kDataBoundCpu,      // the trainer waits, and the CPU that prepares its data is used up
  kDataBoundStorage,  // the trainer waits, CPU is left, and threads are blocked in reads
  kDataBoundNetwork,  // the trainer waits, CPU is left, and a host's network is full
  kDataBoundOther,    // the trainer waits although none of these is used up: latency, the trainer's own CPU
};

// What determined the number of workers: the one constraint that binds.
enum class Reason {
  kNotRunning,       // not started, suspended or finished: no workers
  kModeOff,          // mode Off: the number is not touched
  kPlacementLocal,   // placement Local: no remote workers
  kNoMetrics,        // metrics missing, stale or not numbers: the last allocation is held
  kMetricsFallback,  // the same for so long that measured jobs go first: the rest that they leave is held
  kTooFewBatches,    // the window holds too few batches to estimate from: held
  kProbing,          // starved, and no service rate is known yet: one worker, to measure with
  kNotDataBound,     // the feeders' own CPU covers the demand
  kNeedMet,          // workers for the knee plus headroom: more would bring next to nothing
  kSated,            // the trainer hardly waits with its workers: held
  kExtrapolation,    // the need is far above anything observed: a bounded first step
  kMin,              // min_workers, above the need
  kMax,              // max_workers, below the need
  kCpu,              // no node has room for another worker
  kNoEffect,         // more workers were tried, and brought no speed
  kStorage,          // its reads limit the job: no more CPU than it holds or uses
  kQuota,            // the quota that the job counts against is used up
  kBudget,           // another worker would cost more than the budget allows
  kNetwork,          // the network of the trainer's hosts, or of every node with room, is full
  kSpread,           // by its own rules of spread, no node with room takes another worker
  kFlat,             // another worker would bring next to nothing
};

std::string_view to_string(Confidence confidence);  // "None", "Assumed", "Measured"
std::string_view to_string(Bottleneck bottleneck);  // the enumerator without its k: "DataBoundCpu"
std::string_view to_string(Reason reason);          // the enumerator without its k: "NoMetrics"

// CPU for the feeders of a job on one node, all together; request and limit as in Kubernetes.
struct LocalCpu {
  std::string node;
  std::int64_t request_millicores = 0;
  std::int64_t limit_millicores = 0;

  friend bool operator==(const LocalCpu&, const LocalCpu&) = default;
};

struct JobPlan {
  JobId id;

  // The number of workers to set. Equal to Job::allocated_workers in modes Recommend and Off.
  int workers = 0;
  // The number the model wants. Differs from `workers` only in modes Recommend and Off.
  int recommended = 0;
  // To carry out: stop the victims, then start workers until there are `workers` of them.
  // Victims by name, first to go first: exactly the surplus of live workers. No worker moves: one that has to leave its
  // node is a victim, and its successor comes with a later plan.
  std::vector<std::string> victims;
  // Nodes on which room was found for each worker that does not exist yet. The cluster's own scheduler binds pods, and
  // prefers these.
  std::vector<std::string> new_worker_nodes;

  // The feeders' CPU, one entry per Job::hosts entry, in its order. Empty unless Job::local_adjustable.
  std::vector<LocalCpu> local;

  Estimate estimate;                // the basis of the decision
  double supply_ratio = 0;          // supply / demand with the workers that are ready now; 0: nothing is known
  double planned_supply_ratio = 0;  // the same once `recommended` workers are ready
  Bottleneck bottleneck = Bottleneck::kUnknown;
  std::string evidence;  // for the bottleneck: the figures it follows from; empty unless Config::in_words
  Reason reason = Reason::kNotRunning;
  std::string explanation;  // one sentence for people, with the numbers; empty unless Config::in_words

  // How much faster the job would step with one worker more than `recommended`; percent, >= 0.
  double next_worker_gain_percent = 0;
};

struct Plan {
  std::vector<JobPlan> jobs;  // one per job of the snapshot, ordered by id
  // Over all nodes: the CPU that data workers may use, and the CPU that this plan gives to them. Jobs in modes
  // Recommend and Off count with their present CPU.
  std::int64_t capacity_millicores = 0;
  std::int64_t granted_millicores = 0;
};

}  // namespace sluice::scheduler
