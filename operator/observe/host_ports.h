// Ports on the network of nodes that pods hold, or will hold. kube-scheduler puts no two pods with the same one on a
// node.
//
// Thread safety: a pure function.
#pragma once

#include <cstdint>
#include <set>

#include "src/kube/store.h"

namespace sluice::observe {

// Those of all pods that have not ended, on whatever node, and of the templates of trainers' Jobs, whose pods may be
// still to come. Without those of the trainer of `training_job` itself.
std::set<std::int64_t> held_host_ports(const kube::Store::Objects& pods, const kube::Store::Objects& trainer_jobs,
                                       const kube::ObjectKey& training_job);

}  // namespace sluice::observe
