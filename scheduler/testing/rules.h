// Rules that every plan keeps, for any cluster, objective and policy: checked by plain sums over the snapshot.
//
//   capacity    CPU, memory and network of a node; a node that is over-full already is given nothing more
//   sums        quotas and the budget: a job that is beyond them adds nothing
//   bounds      max_workers; modes that leave the number alone; jobs that do not run have no workers
//   victims     live, named once, and as many as the plan says
//   figures     finite; one sentence for people
//
// Thread safety: pure function.
#pragma once

#include <string>
#include <vector>

#include "scheduler/model/plan.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler::testing {

// One sentence for each rule that is broken.
std::vector<std::string> broken_rules(const ClusterSnapshot& snapshot, const Plan& plan);

// REQUIRES: the job is in the snapshot
const Job& job_of(const ClusterSnapshot& snapshot, const JobId& id);

// REQUIRES: the node is in the snapshot
const Node& node_of(const ClusterSnapshot& snapshot, const std::string& name);

// CPU of a node that neither others nor feeders nor workers have.
std::int64_t room_on(const Node& node, const ClusterSnapshot& snapshot);

// The price of a core on the node per hour.
double price_per_core(const Node& node);

// The price per hour of all workers that have a node, or of those that count against a quota.
double cost_of(const ClusterSnapshot& snapshot, const std::string& quota = "");

// Everything that the plan says, but for the memories.
std::string text_of(const Plan& plan);

// The live workers that the plan leaves where they are.
std::vector<const Worker*> staying(const Job& job, const JobPlan& plan);

}  // namespace sluice::scheduler::testing
