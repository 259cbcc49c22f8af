// Nodes, as far as data workers can use them.
//
// Thread safety: none; one owner of `pending_pods`.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "operator/config.h"
#include "operator/observe/pending_pods.h"
#include "operator/observe/pod_view.h"

namespace sluice::observe {

// Of a node's allocatable CPU.
struct CpuShares {
  int cluster_percent = 100;  // that workers may take
  int free_percent = 0;       // that workers and feeders' growth leave free
};

// Nodes of fewer than four cores keep nothing free: a twentieth of them holds no pod, and may cost a worker.
std::int64_t kept_free_millicores(std::int64_t allocatable_millicores, int free_percent);

// `known_pools`: the uids of the pools whose pods are data workers of known jobs; all other pods are obstacles until
// they have finished. Pods that wait for a node count as `pending_pods` says. `planned_feeders`:
// uids of the trainer pods whose feeder's CPU the plan sets, and so counts itself. Node::group is not set: see
// node_groups.h.
std::vector<scheduler::Node> view_nodes(const kube::Store::Objects& nodes, const PodViews::Entries& pods,
                                        const std::set<std::string>& known_pools,
                                        const std::set<std::string>& planned_feeders, CpuShares shares,
                                        const control::NodeFacts& facts, PendingPods& pending_pods, double now_seconds);

}  // namespace sluice::observe
