// The domains over which jobs spread their workers, in the scheduler's compact form: numbers for the values of labels.
//
// Thread safety: pure function.
#pragma once

#include <span>
#include <vector>

#include "operator/api/node_rules.h"
#include "operator/api/spread_term.h"
#include "scheduler/model/snapshot.h"
#include "src/kube/store.h"

namespace sluice::observe {

// Of the workers of a job. Lifetime: the rules outlive it.
struct PodSpread {
  const api::NodeRules* nodes = nullptr;
  std::span<const api::SpreadTerm> terms;
};

// Sets Node::domains of every node and Job::spread of every job. Without a term it does nothing. REQUIRES: `seen` are
// the objects' views, and `spread` is of the jobs, in the same order.
void set_spread(const std::vector<PodSpread>& spread, const kube::Store::Objects& objects,
                std::vector<scheduler::Node>& seen, std::vector<scheduler::Job>& jobs);

}  // namespace sluice::observe
