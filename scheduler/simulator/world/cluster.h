// The simulated cluster: groups of equal nodes, what their jobs can read, and the physics.
//
// Thread safety: plain values.
#pragma once

#include <string>
#include <vector>

#include "scheduler/simulator/world/data_set.h"
#include "scheduler/simulator/world/physics.h"

namespace sluice::simulator {

struct NodeGroup {
  std::string name;  // of the group; its nodes are called NAME-0, NAME-1, ...
  int count = 1;
  int gpus = 0;
  double cores = 0;
  double network_gbps = 0;  // each way; 0: unlimited
  bool spot = false;

  std::string node_name(int index) const { return name + "-" + std::to_string(index); }
};

struct Cluster {
  std::vector<NodeGroup> groups;
  std::vector<DataSet> data_sets;  // on the storage
  CacheSpec cache;
  Physics physics;

  int data_set(const std::string& name) const;  // its index; -1: there is none
  int gpus() const;
  double cores() const;           // of all nodes
  double gpu_host_cores() const;  // of nodes with GPUs
  // Local-equivalent cores of all nodes: those of GPU hosts at their highest worth, local or remote.
  double effective_cores() const;
  int most_gpus_per_node() const;
};

}  // namespace sluice::simulator
