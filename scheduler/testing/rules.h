// What no plan may do, whatever the cluster, the objective and the policy: checked by plain sums over the snapshot.
//
//   capacity    CPU, memory and network of a node; a node that is over-full already is given nothing more
//   sums        quotas and the budget: who is beyond them adds nothing
//   bounds      max_workers; modes that leave the number alone; jobs that do not run have no workers
//   victims     live, named once, and as many as the plan says
//   admission   whole gangs on schedulable nodes with GPUs to spare; nothing that Kueue admits
//   figures     finite; one sentence for people
//
// Thread safety: pure function.
#pragma once

#include <string>
#include <vector>

#include "scheduler/plan.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler::testing {

// One sentence for each rule that is broken.
std::vector<std::string> broken_rules(const ClusterSnapshot& snapshot, const Plan& plan);

// REQUIRES: the job is in the snapshot
const Job& job_of(const ClusterSnapshot& snapshot, const JobId& id);

// REQUIRES: the node is in the snapshot
const Node& node_of(const ClusterSnapshot& snapshot, const std::string& name);

// CPU of a node that neither others nor feeders nor workers have.
std::int64_t room_on(const Node& node, const ClusterSnapshot& snapshot);

// What a core on the node costs per hour.
double price_per_core(const Node& node);

// What all workers that have a node cost per hour.
double cost_of(const ClusterSnapshot& snapshot);

// Everything that the plan says, but for the memories.
std::string text_of(const Plan& plan);

// The live workers that the plan leaves where they are.
std::vector<const Worker*> staying(const Job& job, const JobPlan& plan);

}  // namespace sluice::scheduler::testing
