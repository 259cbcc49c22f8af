// From the number of workers that a baseline requests for each job to a plan that the nodes can hold. All baselines
// share it, so that they differ in their own algorithm alone.
//
// A request may be of any size; workers that do not fit are not started. As with Kubernetes:
//   local     the feeders' requests come first
//   existing  workers keep their node where feeders leave room
//   new       workers go to nodes without GPUs first, among those to the one with the most free CPU
//   scale-in  workers without a node go first, then those not ready, then the youngest
//   pending   a worker that finds no room stays requested, and is tried again at the next decision
//
// Invariants
//   1. No node is given more than it has: requests of feeders and workers stay within what other pods leave.
//   2. min_workers and max_workers of a job hold where room allows; modes Off and Recommend keep what there is, whether
//      or not the job runs; placement Local has no workers; new workers do not exceed a quota's CPU.
//   3. Deterministic, whatever the order of nodes, jobs and workers in the snapshot.
//
// Thread safety: pure functions on values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/model/name_index.h"
#include "scheduler/model/plan.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

struct Request {
  int workers = 0;                             // data workers of Job::worker_millicores
  std::optional<std::vector<LocalCpu>> local;  // per host, in the order of Job::hosts; none: the GPU-proportional share
  Estimate estimate;                           // the policy's own, where it estimates
};

// The order in which jobs get their next worker when room is short.
enum class Turns {
  // One worker for each job in turn. Kubernetes' first come first served is harder on baselines: a job that asks for
  // too much at its start keeps others from starting theirs.
  kOneEach,
  kJobByJob,  // all of the first job's, then all of the second's
};

// Where new workers may go.
enum class WorkerNodes {
  // The CPU of GPU hosts is reserved for their GPUs, idle ones included. A static split means so, and the taint that
  // GPU nodes carry in practice enforces it. Cachew's, Pecan's and FastFlow's workers are machines of their own.
  kWithoutGpus,
  kAll,
};

// Nodes in the order of their names, and the part of their CPU that belongs to each job. Lifetime: refers to the nodes.
class NodeIndex {
 public:
  explicit NodeIndex(const std::vector<Node>& nodes);

  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& operator[](int index) const { return *nodes_[index]; }
  int index_of(std::string_view name) const { return index_.position_of(name); }  // kNowhere: not in the snapshot
  const Node* find(std::string_view name) const;                                  // nullptr: the same

  // CPU that trainers and data workers may use on the node.
  static std::int64_t usable_millicores(const Node& node);

  // A host's part of its node's CPU in proportion to its GPUs; its present CPU where that cannot be told.
  std::int64_t share_millicores(const TrainerHost& host) const;

 private:
  std::vector<const Node*> nodes_;
  NameIndex index_;
};

// Each host's GPU-proportional share, guaranteed and as a limit: what every trainer gets without a scheduler.
std::vector<LocalCpu> gpu_proportional(const Job& job, const NodeIndex& nodes);

// REQUIRES: one request for each job, in the order of snapshot.jobs
Plan grant(const ClusterSnapshot& snapshot, const std::vector<Request>& requests, Turns turns,
           WorkerNodes worker_nodes = WorkerNodes::kAll);

}  // namespace sluice::scheduler
