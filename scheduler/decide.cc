#include "scheduler/decide.h"

#include <algorithm>
#include <map>

#include "scheduler/admission.h"
#include "scheduler/contender.h"
#include "scheduler/entitlement.h"
#include "scheduler/explain.h"
#include "scheduler/growth.h"
#include "scheduler/node_table.h"
#include "scheduler/placement.h"

namespace sluice::scheduler {
namespace {

// Other modes than Auto keep what they hold, whether or not the job runs.
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

std::vector<int> everybody(const std::vector<Contender>& contenders) {
  std::vector<int> indices(contenders.size());
  for (int i = 0; i < std::ssize(indices); ++i) indices[i] = i;
  return indices;
}

std::int64_t worker_capacity(const NodeTable& nodes) {
  std::int64_t capacity = 0;
  for (int i = 0; i < nodes.size(); ++i) {
    const NodeState& state = nodes[i];
    // A node that takes no new workers offers exactly the room that its workers stand on.
    capacity += state.node->schedulable
                    ? std::min(state.worker_room_millicores, state.room_millicores - state.local_millicores)
                    : std::min(state.standing_millicores, state.room_millicores);
  }
  return capacity;
}

bool is_advised(const Contender& c) { return c.advised.has_value(); }

// The contender as if it held nothing and bid for what it would want. Its workers' room is free again.
Contender back_in_the_pot(const Contender& c, NodeTable& nodes) {
  for (const int node : c.occupied) occupy(nodes[node], c, -1);
  Contender candidate = c;
  candidate.want = *c.advised;
  candidate.limit = candidate.want.workers;
  candidate.workers = 0;
  candidate.blocked.reset();
  candidate.kept.clear();
  candidate.new_nodes.clear();
  candidate.occupied.clear();
  return candidate;
}

// A recommendation is acted upon by somebody else, or not at all: until then the job holds exactly what it has. This is
// what it would get from what the others leave, of the nodes and of every limit, with its own workers back in the pot.
std::map<int, Contender> advise(const std::vector<Contender>& contenders, const NodeTable& placed,
                                const ClusterSnapshot& snapshot, const Config& config) {
  std::map<int, Contender> advice;
  if (std::none_of(contenders.begin(), contenders.end(), is_advised)) return advice;
  NodeTable nodes = placed;
  std::vector<int> asked;
  std::vector<Contender> advised;
  std::optional<double> budget_left = snapshot.budget_per_hour;
  for (int i = 0; i < std::ssize(contenders); ++i) {
    const Contender& c = contenders[i];
    if (is_advised(c)) {
      asked.push_back(i);
      advised.push_back(back_in_the_pot(c, nodes));
    } else if (budget_left) {
      for (const int node : c.occupied) *budget_left -= c.price_per_hour_on(nodes[node]);
    }
  }
  Growth again(advised, nodes, snapshot, config);
  for (const Contender& c : contenders)
    if (!is_advised(c)) again.hold(c);
  again.hold_unconditional();
  again.run(everybody(advised));
  place(advised, nodes, again, budget_left, config);
  for (std::size_t i = 0; i < asked.size(); ++i) advice.emplace(asked[i], std::move(advised[i]));
  return advice;
}

std::vector<LocalCpu> local_plan(const Contender& c, const NodeTable& nodes) {
  std::vector<LocalCpu> local;
  if (!c.job->local_adjustable) return local;
  local.reserve(c.hosts.size());
  for (std::size_t i = 0; i < c.hosts.size(); ++i) {
    const TrainerHost& now = c.job->hosts[i];
    if (c.adjustable)
      local.push_back({now.node, c.hosts[i].granted, limit_millicores(c, c.hosts[i], nodes)});
    else
      local.push_back({now.node, now.request_millicores, now.limit_millicores});
  }
  return local;
}

Reason reason_of(const Contender& c) {
  // Of a job that is not measured only what it lacks of its minimum can be refused: the rest it holds already.
  const bool lacks_minimum = c.workers < std::min(c.least_workers, c.limit) && c.limit > c.assured_workers();
  if ((c.want.unconditional || c.want.last_in_line) && !lacks_minimum) return c.want.reason;
  if (c.blocked) return *c.blocked;
  // Nothing was refused, yet less than wanted was asked for: the curve is flat there.
  return c.want.reason;
}

void fill_plan(const Contender& c, const Contender& wish, const NodeTable& nodes, JobPlan& plan) {
  plan.id = c.job->id;
  plan.recommended = std::max(wish.workers, wish.assured_workers());
  plan.workers = c.job->mode == Mode::kRecommend ? c.job->allocated_workers : plan.recommended;
  plan.victims = victims_of(c, nodes);
  plan.new_worker_nodes.reserve(c.new_nodes.size());
  for (const int node : c.new_nodes) plan.new_worker_nodes.emplace_back(nodes.name(node));
  plan.local = local_plan(c, nodes);
  plan.reason = reason_of(wish);
}

}  // namespace

Plan decide(const ClusterSnapshot& snapshot, const Config& config) {
  NodeTable nodes(snapshot.nodes, smallest_worker(snapshot.jobs));

  // 1. Estimate: what each job demands and what a core does for it, from its measurement and what was learnt before;
  //    and want: how much it would have if nobody else existed, and why so much. What nothing justifies taking is held.
  std::vector<Contender> contenders = make_contenders(snapshot, nodes, config);
  hold_workers(contenders, nodes);

  // 2. Admit: waiting trainers whose GPUs are free start. Their CPU is theirs from now on.
  const std::map<JobId, Admission> admitted = admit(snapshot, nodes, config);

  // 3. Floor: every job's part of its own hosts, as far as it needs it. Data workers of others make way.
  grant_floors(contenders, nodes, config);
  hold_frozen(contenders, nodes);
  Growth growth(contenders, nodes, snapshot, config);
  growth.hold_unconditional();

  // 4. Grow: minima, then whoever gains most from the next piece, on its own hosts or remote.
  growth.run(everybody(contenders));

  // 5. Place: which workers stay, which go, and where there is room for new ones.
  place(contenders, nodes, growth, snapshot.budget_per_hour, config);

  // 6. Advise: what the jobs in mode Recommend would get from the rest.
  const std::map<int, Contender> advice = advise(contenders, nodes, snapshot, config);

  // 7. Explain: every figure and the one constraint that binds, per job.
  const ProgressTable& curve = progress_table(config.softmin_exponent);
  Plan plan;
  plan.capacity_millicores = worker_capacity(nodes);
  plan.jobs.resize(contenders.size());
  for (int i = 0; i < std::ssize(contenders); ++i) {
    const Contender& c = contenders[i];
    const auto its_advice = advice.find(i);
    const Contender& wish = its_advice == advice.end() ? c : its_advice->second;
    plan.granted_millicores += std::ssize(c.occupied) * c.job->worker_millicores;
    fill_plan(c, wish, nodes, plan.jobs[i]);
    if (const auto start = admitted.find(c.job->id); start != admitted.end()) plan.jobs[i].admission = start->second;
    explain(wish, snapshot.taken_at_seconds, nodes, curve, config, plan.jobs[i]);
  }
  return plan;
}

}  // namespace sluice::scheduler
