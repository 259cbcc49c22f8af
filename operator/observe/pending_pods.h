// Room that data workers leave to pods that wait for a node: trainers, and pods that Sluice does not know.
//
// Thread safety: none; one owner.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/api/node.h"
#include "operator/api/node_rules.h"
#include "scheduler/model/snapshot.h"
#include "src/kube/store.h"

namespace sluice::observe {

// By the name of the resource, such as nvidia.com/gpu.
using Devices = std::map<std::string, std::int64_t>;

struct PendingPod {
  std::string key;
  std::string uid;
  bool is_trainer = false;
  std::string nominated_node;  // on which kube-scheduler makes room for it; empty: none
  std::int64_t request_millicores = 0;
  std::int64_t request_memory_bytes = 0;
  Devices devices;
  const api::NodeRules* rules = nullptr;
};

// A node as it would be if all data workers left it.
struct NodeWithoutWorkers {
  api::Node object;
  scheduler::Node* seen = nullptr;
  std::int64_t worker_millicores = 0;  // that they hold there now
  std::int64_t worker_memory_bytes = 0;
  Devices free_devices;
};

class PendingPods {
 public:
  // Counts each pod on a node that takes it, as if the pod ran there: workers that are in its way leave.
  //   A trainer counts on the node with the most room, for as long as it waits.
  //   Another pod counts where its CPU, memory and devices fit once workers leave, for kPatienceSeconds at most.
  //   Something else may keep it waiting (a volume, another pod); it is tried again kRetrySeconds after it was given
  //   up.
  // Of the other pods, at most kMostNeighbours count at a time.
  void reserve(std::vector<PendingPod> pending, std::vector<NodeWithoutWorkers>& nodes, double now_seconds);

  static constexpr double kPatienceSeconds = 300;
  static constexpr double kRetrySeconds = 1800;
  static constexpr int kMostNeighbours = 64;

 private:
  // A pod for which workers have left a node, or shall.
  struct Turn {
    std::string node;
    double since_seconds = 0;
  };

  // Lifetime: points into `nodes`; nullptr: workers cannot help.
  NodeWithoutWorkers* place(const PendingPod& pod, std::vector<NodeWithoutWorkers>& nodes) const;

  std::map<std::string, Turn> turns_;  // by the pod's uid
};

}  // namespace sluice::observe
