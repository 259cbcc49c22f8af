// What a minimum may take, and what it may not: it comes before any job's growth, but within every limit.
#include <algorithm>

#include "scheduler/decide/decide.h"
#include "scheduler/estimate/estimator.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Wants 11 workers of one core.

// Of a team, and its minimum is 5.
Job of_team(const MakeJob& maker) {
  Job job = MakeJob(maker).min(5).obj();
  job.quota = "team";
  return job;
}

MakeJob holds(int workers) { return MakeJob("a").holds(workers, "n"); }

// Its trainer stands on host "h" and receives 115.5 MB/s from each worker; it was measured until a moment ago.
Job receiving(MakeJob maker) {
  Job job = of_team(maker.measures(kHungry));
  job.hosts[0].node = "h";
  job.bytes_per_sample = 150'000;
  job.memory = estimate_of(job, kNowSeconds, {}).memory;
  job.observation = {std::nullopt, "no metrics"};
  return job;
}

Node host_with_network(double bytes_per_second) {
  return {.name = "h", .allocatable_millicores = 0, .network_bytes_per_second = bytes_per_second};
}

struct Limits {
  int cores = 64;
  std::optional<std::int64_t> quota_millicores;
  std::optional<int> affordable;  // workers
  std::optional<double> network;  // of host "h"
};

ClusterSnapshot under(const Limits& limits, std::vector<Job> jobs) {
  ClusterSnapshot snapshot{kNowSeconds, {}, std::move(jobs), {{"team", limits.quota_millicores}}, {}};
  snapshot.nodes = {{.name = "n", .allocatable_millicores = 1000 * limits.cores, .price_per_hour = 0.1 * limits.cores}};
  if (limits.affordable) snapshot.budget_per_hour = 0.1 * *limits.affordable;
  if (limits.network) snapshot.nodes.push_back(host_with_network(*limits.network));
  return snapshot;
}

TEST_CASE("the minimum of a job without metrics: its workers stay, and more are bounded like all growth") {
  Job other_holds_three = MakeJob("b").holds(3, "n").obj();
  other_holds_three.quota = "team";
  Job hungry_holds_four = MakeJob("b").holds(4, "n").priority(9).measures(kHungry).obj();
  hungry_holds_four.quota = "team";
  struct Row {
    const char* situation;
    Limits limits;
    std::vector<Job> jobs;  // the first one is looked at
    int want_workers;
    Reason want_reason;
  };
  const Row rows[] = {
      {"no limit", {}, {of_team(holds(2))}, 5, Reason::kMin},
      {"it has just started and holds nothing", {}, {of_team(holds(0))}, 5, Reason::kMin},
      {"the quota is three", {.quota_millicores = 3000}, {of_team(holds(2))}, 3, Reason::kQuota},
      {"the quota is three, it holds nothing", {.quota_millicores = 3000}, {of_team(holds(0))}, 3, Reason::kQuota},
      {"the quota is one, and it holds two already",
       {.quota_millicores = 1000},
       {of_team(holds(2))},
       2,
       Reason::kQuota},
      {"the quota is nought", {.quota_millicores = 0}, {of_team(holds(0))}, 0, Reason::kQuota},
      {"a part of the quota stands for a job that is not measured either",
       {.quota_millicores = 6000},
       {of_team(holds(2)), other_holds_three},
       3,
       Reason::kQuota},
      {"a part of the quota is what an important job has grown to: the minimum comes first",
       {.quota_millicores = 6000},
       {of_team(holds(2)), hungry_holds_four},
       5,
       Reason::kMin},
      {"the budget is three workers", {.affordable = 3}, {of_team(holds(2))}, 3, Reason::kBudget},
      {"the budget is one worker, and it holds two", {.affordable = 1}, {of_team(holds(2))}, 2, Reason::kBudget},
      {"the network of its host carries three", {.network = 3.5e8}, {receiving(holds(2))}, 3, Reason::kNetwork},
      {"the node has three cores", {.cores = 3}, {of_team(holds(2))}, 3, Reason::kCpu},
      {"the node has two cores", {.cores = 2}, {of_team(holds(2))}, 2, Reason::kCpu},
      {"one of three is lost: it comes back within the quota of four",
       {.quota_millicores = 4000},
       {of_team(holds(2).allocated(3))},
       4,
       Reason::kQuota},
      {"one of three is lost, and the quota was cut to one: the number stands all the same",
       {.quota_millicores = 1000},
       {of_team(holds(2).allocated(3))},
       3,
       Reason::kQuota},
      {"one of three is lost, and there is no room for it: the number stands",
       {.cores = 2},
       {of_team(holds(2).allocated(3))},
       3,
       Reason::kCpu},
      {"two more of its workers are there than it is to have, and the quota is three: one goes",
       {.quota_millicores = 3000},
       {of_team(holds(4).allocated(2))},
       3,
       Reason::kQuota},
      {"not measured for an hour",
       {.quota_millicores = 3000},
       {of_team(holds(2).unmeasured_for(3600))},
       3,
       Reason::kQuota},
      {"not measured for an hour, no limit", {}, {of_team(holds(2).unmeasured_for(3600))}, 5, Reason::kMin},
      {"its maximum is below its minimum", {.quota_millicores = 3000}, {of_team(holds(2).max(4))}, 3, Reason::kQuota},
      {"it holds its minimum, one of it is lost and has no room: nothing is refused to it",
       {.cores = 4},
       {of_team(holds(4).allocated(5))},
       5,
       Reason::kNoMetrics},
      {"mode Off, one is lost and has no room",
       {.cores = 2},
       {of_team(holds(2).allocated(3).mode(Mode::kOff))},
       3,
       Reason::kModeOff},
      {"mode Off: nothing is added, whatever the minimum",
       {},
       {of_team(holds(2).mode(Mode::kOff))},
       2,
       Reason::kModeOff},
      {"measured and starved", {.quota_millicores = 3000}, {of_team(holds(2).measures(kHungry))}, 3, Reason::kQuota},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const ClusterSnapshot snapshot = under(row.limits, row.jobs);
    const Plan plan = decide(snapshot, {});
    CHECK(broken_rules(snapshot, plan) == std::vector<std::string>{});
    CHECK(plan_of(plan, "a").workers == row.want_workers);
    CHECK(to_string(plan_of(plan, "a").reason) == to_string(row.want_reason));
    const int live = static_cast<int>(row.jobs[0].workers.size());
    CHECK(std::ssize(plan_of(plan, "a").victims) == std::max(0, live - row.want_workers));
  }
}

TEST_CASE("what a large worker was granted and has no node for goes to the minimum of a job that is not measured") {
  // Three cores in two pieces: the large worker's two are granted first, and fit on neither.
  Job small = MakeJob("small").min(4).obj();
  small.worker_millicores = 500;
  ClusterSnapshot snapshot = MakeSnapshot()
                                 .node("n1", 1500)
                                 .node("n2", 1500)
                                 .job(MakeJob("large").priority(1).max(1).worker_millicores(2000).measures(kHungry))
                                 .obj();
  snapshot.jobs[0].min_workers = 1;
  snapshot.jobs.push_back(small);
  const Plan plan = decide(snapshot, {});
  CHECK(plan_of(plan, "large").workers == 0);
  CHECK(to_string(plan_of(plan, "large").reason) == "Cpu");
  CHECK(plan_of(plan, "small").workers == 4);
  CHECK(to_string(plan_of(plan, "small").reason) == "Min");
}

TEST_CASE("a minimum that finds no node leaves the quota to the others") {
  Job first = of_team(holds(0));
  first.worker_memory_bytes = std::int64_t{1} << 30;
  Job other = MakeJob("b").measures(kHungry).obj();
  other.quota = "team";
  ClusterSnapshot snapshot = under({.quota_millicores = 5000}, {first, other});
  snapshot.nodes[0].free_memory_bytes = 0;
  const Plan plan = decide(snapshot, {});
  CHECK(plan_of(plan, "a").workers == 0);
  CHECK(to_string(plan_of(plan, "a").reason) == "Cpu");
  CHECK(plan_of(plan, "b").workers == 5);
}

TEST_CASE("why a minimum was not reached is said in words") {
  const Plan plan = decide(under({.quota_millicores = 3000}, {of_team(holds(2))}), {});
  CHECK(plan.jobs[0].explanation == "Quota team limits it to 3 workers.");
}

TEST_CASE("minima beyond the quota: by priority, and among equals in turns") {
  const auto waiting_for_metrics = [](const std::string& name, int priority) {
    Job job = of_team(MakeJob(name).priority(priority));
    return job;
  };
  struct Row {
    const char* situation;
    int priority_a, priority_b;
    int want_a, want_b;
  };
  const Row rows[] = {
      {"the first is more important", 1, 0, 5, 2},
      {"the second is more important", 0, 1, 2, 5},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Plan plan = decide(under({.quota_millicores = 7000}, {waiting_for_metrics("a", row.priority_a),
                                                                waiting_for_metrics("b", row.priority_b)}),
                             {});
    CHECK(plan_of(plan, "a").workers == row.want_a);
    CHECK(plan_of(plan, "b").workers == row.want_b);
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
