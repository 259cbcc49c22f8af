// Nodes, as far as data workers can use them.
//
// Thread safety: pure functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "operator/observe/pod_view.h"

namespace sluice::observe {

// `known_pools`: the uids of the pools whose pods are data workers of known jobs; all other pods are obstacles until
// they have finished. A trainer pod that is not bound to a node yet is counted where it would fit best if the workers
// gave way, so that they do: a job's own or another's workers must never keep a trainer waiting. `cpu_percent`: share
// of a node's allocatable CPU that workers may take.
std::vector<scheduler::Node> view_nodes(const kube::Store::Objects& nodes, const PodViews::Entries& pods,
                                        const std::set<std::string>& known_pools, int cpu_percent);

}  // namespace sluice::observe
