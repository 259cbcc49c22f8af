// What quotas, the budget and minima mean to each other, on random clusters.
#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("a job that is told Budget or Quota could not have had one more worker") {
  property("limits bind", [](unsigned seed) {
    const std::optional<ClusterSnapshot> cluster = settled(random_cluster(seed, {.priorities = true,
                                                                                 .quotas = true,
                                                                                 .gangs = true,
                                                                                 .fixed_feeders = true,
                                                                                 .minima = true,
                                                                                 .prices = true,
                                                                                 .cheap_hosts = true,
                                                                                 .budget = true}),
                                                           some_config(seed));
    RC_ASSERT(cluster.has_value());
    const ClusterSnapshot& snapshot = *cluster;
    const Plan plan = decide(snapshot, some_config(seed));
    const ClusterSnapshot after = applied(snapshot, plan);
    const double left = snapshot.budget_per_hour.value_or(1e9) - cost_of(after);
    const double left_for_team = snapshot.quotas[0].budget_per_hour.value_or(1e9) - cost_of(after, "team");
    std::int64_t of_team = 0;
    for (const Job& job : after.jobs) of_team += job.quota == "team" ? job.allocated_workers * 1000 : 0;
    for (const JobPlan& job : plan.jobs) {
      if (job.reason == Reason::kQuota) RC_ASSERT(of_team + 1000 > *snapshot.quotas[0].worker_millicores);
      if (job.reason != Reason::kBudget) continue;
      const double left_for_it = job_of(snapshot, job.id).quota.empty() ? left : std::min(left, left_for_team);
      for (const Node& node : after.nodes)
        RC_ASSERT(room_on(node, after) < 1000 || price_per_core(node) > left_for_it - 1e-6);
    }
  });
}

TEST_CASE("no job is below its minimum without a limit as the reason, measured or not") {
  property("minima", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed, everything());
    for (const JobPlan& plan : decide(snapshot, some_config(seed)).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      if (!job.running || job.mode == Mode::kOff || job.placement == Placement::kLocal) continue;
      RC_ASSERT(plan.recommended >= std::min(job.min_workers, job.max_workers) || is_limit(plan.reason));
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
