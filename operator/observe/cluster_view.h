// Nodes, as far as data workers can use them.
//
// Thread safety: none; one owner of `pending_pods`.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "operator/config.h"
#include "operator/observe/pending_pods.h"
#include "operator/observe/pod_view.h"

namespace sluice::observe {

// `known_pools`: the uids of the pools whose pods are data workers of known jobs; all other pods are obstacles until
// they have finished. Pods that wait for a node count as `pending_pods` says. `cpu_percent`: share of a node's
// allocatable CPU that workers may take. `planned_feeders`: uids of the trainer pods whose feeder's CPU the plan sets,
// and so counts itself. Node::group is not set: see node_groups.h.
std::vector<scheduler::Node> view_nodes(const kube::Store::Objects& nodes, const PodViews::Entries& pods,
                                        const std::set<std::string>& known_pools,
                                        const std::set<std::string>& planned_feeders, int cpu_percent,
                                        const control::NodeFacts& facts, PendingPods& pending_pods, double now_seconds);

}  // namespace sluice::observe
