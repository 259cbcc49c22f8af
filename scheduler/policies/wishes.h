// From what a rival wishes for each job to a plan that the nodes can hold. Shared by all rivals, so that they differ in
// their own algorithm alone.
//
// A rival's wish may be as large as it likes; what does not fit is not started. As with Kubernetes:
//   waiting trainers start as in our own first come first served order (admission.h);
//   the feeders' requests come first, then workers that exist keep their node, then new ones are placed: nodes without
//   GPUs first, among those where most is free;
//   scale-in takes workers without a node first, then those not ready, then the youngest;
//   a worker that finds no room stays wished for, and is tried again at the next decision.
//
// Invariants
//   1. No node is given more than it has: requests of feeders and workers stay within what other pods leave.
//   2. min_workers and max_workers of a job hold where room allows; modes Off and Recommend keep what there is;
//      placement Local has no workers; a quota's CPU is not exceeded by new workers.
//   3. Deterministic, whatever the order of nodes, jobs and workers in the snapshot.
//
// Thread safety: pure functions on values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/name_index.h"
#include "scheduler/plan.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

struct Wish {
  int workers = 0;                             // data workers of Job::worker_millicores
  std::optional<std::vector<LocalCpu>> local;  // per host, in the order of Job::hosts; none: the GPU-proportional share
  Estimate estimate;                           // what the policy measured, where it measures
  std::optional<EstimatorMemory> memory;       // to be handed back in the next snapshot
};

// Whose next worker is placed first when room is short.
enum class Turns {
  // One worker for each job in turn. Kinder to rivals than Kubernetes' first come first served, under which a job that
  // asks for too much at its start keeps others from starting theirs.
  kOneEach,
  kJobByJob,  // all of the first job's, then all of the second's
};

// Where new workers may go.
enum class WorkerNodes {
  // The CPU of GPU hosts is reserved for their GPUs, idle ones included: what a static split means, and what the taint
  // that GPU nodes carry in practice enforces. Cachew's, Pecan's and FastFlow's workers are machines of their own.
  kWithoutGpus,
  kAll,
};

// Nodes in the order of their names, and what of their CPU belongs to whom. Lifetime: refers to the nodes.
class NodeIndex {
 public:
  explicit NodeIndex(const std::vector<Node>& nodes);

  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& operator[](int index) const { return *nodes_[index]; }
  int index_of(std::string_view name) const { return index_.position_of(name); }  // kNowhere: not in the snapshot
  const Node* find(std::string_view name) const;                                  // nullptr: the same

  // CPU that trainers and data workers may use on the node.
  static std::int64_t usable_millicores(const Node& node);

  // A host's part of its node's CPU in proportion to its GPUs; what it has now where that cannot be told.
  std::int64_t share_millicores(const TrainerHost& host) const;

 private:
  std::vector<const Node*> nodes_;
  NameIndex index_;
};

// Each host's GPU-proportional share, guaranteed and as a limit: what every trainer gets without a scheduler.
std::vector<LocalCpu> gpu_proportional(const Job& job, const NodeIndex& nodes);

// REQUIRES: one wish for each job, in the order of snapshot.jobs
Plan fulfil(const ClusterSnapshot& snapshot, const std::vector<Wish>& wishes, Turns turns,
            WorkerNodes worker_nodes = WorkerNodes::kAll);

}  // namespace sluice::scheduler
