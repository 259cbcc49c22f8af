#include "scheduler/decide.h"

#include <algorithm>

#include "scheduler/allocation.h"
#include "scheduler/estimator.h"
#include "scheduler/explain.h"
#include "scheduler/room.h"
#include "scheduler/want.h"

namespace sluice::scheduler {
namespace {

// A job on its way through the steps of the decision.
struct Case {
  const Job* job = nullptr;
  Belief belief;
  Want want;
  Grant grant;                  // what it gets, or holds
  std::optional<Grant> advice;  // mode Recommend: what it would get
};

std::vector<Case> in_order_of_id(const std::vector<Job>& jobs) {
  std::vector<Case> cases;
  cases.reserve(jobs.size());
  for (const Job& job : jobs) cases.push_back({&job, {}, {}, {}, {}});
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.job->id < b.job->id; });
  return cases;
}

// A recommendation is acted upon by somebody else, or not at all: until then the job holds exactly what it has.
Claim claim_of(const Case& c) {
  if (c.job->mode == Mode::kRecommend) return {c.job, &c.belief, c.job->allocated_workers, true};
  return {c.job, &c.belief, c.want.workers, c.want.unconditional};
}

std::vector<Grant> grant_claims(const std::vector<Case>& cases, Room& room, const Config& config) {
  std::vector<Claim> claims;
  claims.reserve(cases.size());
  for (const Case& c : cases) claims.push_back(claim_of(c));
  return allocate(claims, room, config);
}

// What the jobs in mode Recommend would get from what the others leave, with their own workers back in the pot.
void advise(std::vector<Case>& cases, Room room, const Config& config) {
  std::vector<Case*> advised;
  std::vector<Claim> claims;
  for (Case& c : cases) {
    if (c.job->mode != Mode::kRecommend) continue;
    for (const std::string& node : c.grant.occupied_nodes) room.release(node, c.job->worker_millicores);
    advised.push_back(&c);
    claims.push_back({c.job, &c.belief, c.want.workers, c.want.unconditional});
  }
  std::vector<Grant> grants = allocate(claims, room, config);
  for (std::size_t i = 0; i < advised.size(); ++i) advised[i]->advice = std::move(grants[i]);
}

JobPlan plan_for(const Case& c) {
  const Grant& wish = c.advice ? *c.advice : c.grant;
  JobPlan plan;
  plan.id = c.job->id;
  plan.recommended = c.want.unconditional ? c.want.workers : wish.workers;
  plan.workers = c.job->mode == Mode::kRecommend ? c.job->allocated_workers : plan.recommended;
  plan.victims = c.grant.victims;
  plan.new_worker_nodes = c.grant.new_worker_nodes;
  plan.reason = wish.out_of_room && !c.want.unconditional ? Reason::kCpu : c.want.reason;
  return plan;
}

}  // namespace

Plan decide(const ClusterSnapshot& snapshot, const Config& config) {
  std::vector<Case> cases = in_order_of_id(snapshot.jobs);

  // 1. Estimate: what each job demands, and what a core does for it, from its measurement and what was learnt before.
  for (Case& c : cases) c.belief = estimate(*c.job, snapshot.taken_at_seconds, config);

  // 2. Want: how many workers each job would have if nobody else existed, and why so many.
  for (Case& c : cases) c.want = want_of(*c.job, c.belief, config);

  // 3. Floor, grow and place: workers that nothing justifies taking, then minima, then whoever gains most from the
  //    next worker, each on a node that has room for it. Jobs that only want advice hold what they have.
  Room room(snapshot.nodes);
  std::vector<Grant> grants = grant_claims(cases, room, config);
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].grant = std::move(grants[i]);

  // 4. Advise: what the jobs in mode Recommend would get from the rest.
  advise(cases, room, config);

  // 5. Explain: every figure and the one constraint that binds, per job.
  Plan plan;
  plan.capacity_millicores = room.capacity_millicores();
  plan.granted_millicores = room.granted_millicores();
  for (const Case& c : cases) {
    plan.jobs.push_back(plan_for(c));
    explain(*c.job, c.belief, snapshot.taken_at_seconds, config, plan.jobs.back());
  }
  return plan;
}

}  // namespace sluice::scheduler
