// Nodes, as far as data workers can use them.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "scheduler/snapshot.h"
#include "src/kube/store.h"

namespace sluice::observe {

// CPU that kube-scheduler reserves for the pod: the larger of what it needs to run (containers and native sidecars) and
// the peak of its initialisation (each init container beside the sidecars started before it), plus overhead; or the
// pod-level request where there is one. KEP-753 and KEP-2837.
std::int64_t pod_request_millicores(const nlohmann::json& pod);

// `is_worker`: which pods are data workers of known jobs; all others are obstacles until they have finished.
// A trainer pod that is not bound to a node yet is counted where it would fit best if the workers gave way, so that
// they do: a job's own or another's workers must never keep a trainer waiting. `cpu_percent`: share of a node's
// allocatable CPU that workers may take.
std::vector<scheduler::Node> view_nodes(const kube::Store::Objects& nodes, const kube::Store::Objects& pods,
                                        const std::function<bool(const nlohmann::json& pod)>& is_worker,
                                        int cpu_percent);

}  // namespace sluice::observe
