#include "scheduler/decide/decide.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/allocate/floor.h"
#include "scheduler/allocate/growth.h"
#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/keeping_order.h"
#include "scheduler/allocate/neighbour_caps.h"
#include "scheduler/allocate/node_table.h"
#include "scheduler/allocate/placement.h"
#include "scheduler/decide/advice.h"
#include "scheduler/decide/explain.h"

namespace sluice::scheduler {
namespace {

// A job in another mode than Auto keeps its workers and CPU, whether or not it runs.
bool may_have_workers(const Job& job) {
  if (job.mode != Mode::kAuto && job.allocated_workers > 0) return true;
  return job.running && job.mode != Mode::kOff && job.placement != Placement::kLocal;
}

// Rests of a node that no worker fits into are no room.
std::int64_t smallest_worker(const std::vector<Job>& jobs) {
  std::int64_t smallest = 0;
  for (const Job& job : jobs)
    if (may_have_workers(job) && (smallest == 0 || job.worker_millicores < smallest)) smallest = job.worker_millicores;
  return smallest;
}

std::int64_t worker_capacity(const std::vector<JobAllocation>& allocations, const NodeTable& nodes) {
  GroupSet open = allocations.empty() ? ~GroupSet{0} : 0;  // a node that no job's worker may go to is no room
  for (const JobAllocation& allocation : allocations) open |= allocation.groups;
  std::int64_t capacity = 0;
  for (int i = 0; i < nodes.size(); ++i) {
    const NodeState& state = nodes[i];
    // A node that takes no new workers offers exactly the room that its workers stand on.
    const bool takes_new = state.schedulable && (open & only(nodes.bit(i))) != 0;
    capacity += takes_new ? state.room_millicores - state.local_millicores
                          : std::min(state.standing_millicores, state.room_millicores);
  }
  return capacity;
}

std::vector<LocalCpu> local_plan(const JobAllocation& allocation, const NodeTable& nodes) {
  std::vector<LocalCpu> local;
  if (!allocation.job->local_adjustable) return local;
  local.reserve(allocation.hosts.size());
  for (std::size_t i = 0; i < allocation.hosts.size(); ++i) {
    const TrainerHost& now = allocation.job->hosts[i];
    if (allocation.adjustable)
      local.push_back(
          {now.node, allocation.hosts[i].granted, limit_millicores(allocation, allocation.hosts[i], nodes)});
    else
      local.push_back({now.node, now.request_millicores, now.limit_millicores});
  }
  return local;
}

Reason reason_of(const JobAllocation& allocation) {
  // A job that is not measured can be refused only the workers that it lacks of its minimum: it holds the rest already.
  const bool lacks_minimum = allocation.workers < std::min(allocation.least_workers, allocation.limit) &&
                             allocation.limit > allocation.assured_workers();
  if (allocation.target.kind != TargetKind::kCompeting && !lacks_minimum) return allocation.target.reason;
  // Where nothing was refused, and yet the job bid for less than its target, the curve is flat.
  return allocation.blocked.value_or(allocation.target.reason);
}

// `outcome`: the allocation itself, or the advice to its job.
void fill_plan(const JobAllocation& allocation, const JobAllocation& outcome, const NodeTable& nodes, JobPlan& plan) {
  plan.recommended = std::max(outcome.workers, outcome.assured_workers());
  plan.workers = allocation.job->mode == Mode::kRecommend ? allocation.job->allocated_workers : plan.recommended;
  plan.victims = victims_of(allocation, nodes);
  plan.new_worker_nodes.reserve(allocation.new_nodes.size());
  for (const int node : allocation.new_nodes) plan.new_worker_nodes.emplace_back(nodes.name(node));
  plan.local = local_plan(allocation, nodes);
  plan.reason = reason_of(outcome);
}

}  // namespace

Plan decide(const ClusterSnapshot& snapshot, const Config& config) {
  NodeTable nodes(snapshot.nodes, smallest_worker(snapshot.jobs));

  // 1. Estimate: what each job demands and what a core does for it, from its measurement and from memory.
  // 2. Target: how many workers each job should have if it were alone, and why. Held workers keep their nodes.
  Plan plan;
  std::vector<JobAllocation> allocations = make_allocations(snapshot, nodes, config, plan.jobs);
  hold_workers(allocations, nodes);

  // 3. Floor: every job gets its part of its own hosts, as far as it needs it. Data workers of other jobs make way, and
  //    feeders that slow a neighbour's trainer down give CPU back. On hosts that are known to suffer when they are
  //    full, feeders keep to their part.
  guard_neighbours(allocations, nodes, snapshot.taken_at_seconds, config);
  grant_floors(allocations, nodes, config);
  hold_frozen(allocations, nodes);

  // 4. Grow: minima first, then the job that gains most from the next piece, on its own hosts or remote.
  Growth growth(allocations, nodes, snapshot, config);
  growth.hold_assured();
  growth.run();

  // 5. Place: which workers stay, which go, and which nodes have room for new ones. Jobs in mode Recommend get advice
  //    from what is left.
  place(allocations, nodes, growth, Budgets(snapshot));
  std::map<int, JobAllocation> advice = advise(allocations, nodes, snapshot, config);

  // 6. Explain: every figure, and the one constraint that binds, per job.
  const ProgressTable& curve = progress_table(config.softmin_exponent);
  plan.capacity_millicores = worker_capacity(allocations, nodes);
  for (int i = 0; i < std::ssize(allocations); ++i) {
    const JobAllocation& allocation = allocations[i];
    const auto advised = advice.find(i);
    const JobAllocation& outcome = advised == advice.end() ? allocation : advised->second;
    plan.granted_millicores += std::ssize(allocation.occupied) * allocation.job->worker_millicores;
    fill_plan(allocation, outcome, nodes, plan.jobs[i]);
    explain(outcome, snapshot.taken_at_seconds, nodes, curve, config, plan.jobs[i]);
  }
  return plan;
}

}  // namespace sluice::scheduler
