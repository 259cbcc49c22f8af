// The guarantees of decide.h where feeders' CPU and workers are decided together, on random clusters.
#include <algorithm>
#include <map>
#include <random>

#include <rapidcheck.h>

#include "scheduler/allocate/floor.h"
#include "scheduler/allocate/job_allocation.h"
#include "scheduler/model/progress.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// What the objective is worth, by the model: weight sqrt(g) f / sqrt(remaining).
double value_of(const ClusterSnapshot& snapshot, const Plan& plan) {
  double value = 0;
  for (const JobPlan& job_plan : plan.jobs) {
    const Job& job = job_of(snapshot, job_plan.id);
    if (!job.running || job_plan.estimate.confidence == Confidence::kNone) continue;
    const std::optional<double>& remaining_seconds = job_plan.estimate.remaining_seconds;
    const double hours = remaining_seconds ? *remaining_seconds / 3600 : 1;
    value += job.weight * std::sqrt(job.gpus) / std::sqrt(hours) * wanted_progress(job_plan, job, kConfig);
  }
  return value;
}

TEST_CASE("feeders and workers together never exceed a node") {
  property("joint capacity", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed, {.missing_metrics = true});
    const Plan plan = decide(snapshot, kConfig);
    const ClusterSnapshot after = applied(snapshot, plan);
    std::map<std::string, std::int64_t> used;
    for (const Job& job : after.jobs) {
      for (const TrainerHost& host : job.hosts) used[host.node] += host.request_millicores;
      for (const Worker& worker : job.workers) used[worker.node] += job.worker_millicores;
    }
    for (const Node& node : snapshot.nodes) RC_ASSERT(used[node.name] <= node.allocatable_millicores);
    RC_ASSERT(!used.contains(""));
  });
}

TEST_CASE("no job is left with less than its floor") {
  property("floor", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed, {.missing_metrics = true, .priorities = true});
    for (const JobPlan& plan : decide(snapshot, kConfig).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      const Node& node = *std::find_if(snapshot.nodes.begin(), snapshot.nodes.end(),
                                       [&](const Node& n) { return n.name == job.hosts[0].node; });
      const std::int64_t share = node.allocatable_millicores * job.gpus / 8;
      const auto need = plan.estimate.known ? static_cast<std::int64_t>(1050 * plan.estimate.knee_cores) : share;
      RC_ASSERT(local_of(plan) >= std::min(share, std::max<std::int64_t>(1000 * job.gpus, need)) - 1);
      RC_ASSERT(plan.local[0].limit_millicores >= plan.local[0].request_millicores);
    }
  });
}

TEST_CASE("the order of nodes, jobs and workers means nothing to the joint plan either") {
  property("joint permutation", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed, {.priorities = true, .quotas = true});
    const Plan want = decide(snapshot, kConfig);
    std::mt19937 random(seed);
    std::shuffle(snapshot.nodes.begin(), snapshot.nodes.end(), random);
    std::shuffle(snapshot.jobs.begin(), snapshot.jobs.end(), random);
    for (Job& job : snapshot.jobs) std::shuffle(job.workers.begin(), job.workers.end(), random);
    const Plan plan = decide(snapshot, kConfig);
    for (std::size_t i = 0; i < want.jobs.size(); ++i) {
      RC_ASSERT(plan.jobs[i].workers == want.jobs[i].workers);
      RC_ASSERT(plan.jobs[i].local == want.jobs[i].local);
      RC_ASSERT(plan.jobs[i].victims == want.jobs[i].victims);
      RC_ASSERT(plan.jobs[i].explanation == want.jobs[i].explanation);
    }
  });
}

TEST_CASE("a joint plan that has been carried out is confirmed, on the same measurements") {
  property("joint fixpoint", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed);
    // A measurement that is as it was before the plan says nothing about what the plan did: the same answer again.
    const Plan first = decide(snapshot, kConfig);
    const Plan second = decide(applied(snapshot, first), kConfig);
    for (std::size_t i = 0; i < first.jobs.size(); ++i) {
      RC_ASSERT(std::abs(second.jobs[i].workers - first.jobs[i].workers) <= 1);
      RC_ASSERT(std::abs(local_of(second.jobs[i]) - local_of(first.jobs[i])) <= 1000);
    }
    const Plan third = decide(applied(applied(snapshot, first), second), kConfig);
    RC_ASSERT(value_of(snapshot, third) >= 0.999 * value_of(snapshot, second));
  });
}

TEST_CASE("no free core is left while a job would be faster with it") {
  property("joint work-conserving", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed);
    const Plan plan = decide(snapshot, kConfig);
    const bool refused =
        std::any_of(plan.jobs.begin(), plan.jobs.end(), [](const JobPlan& job) { return job.reason == Reason::kCpu; });
    if (!refused) return;
    std::map<std::string, std::int64_t> used;
    const ClusterSnapshot after = applied(snapshot, plan);
    for (const Job& job : after.jobs) {
      for (const TrainerHost& host : job.hosts) used[host.node] += host.request_millicores;
      for (const Worker& worker : job.workers) used[worker.node] += job.worker_millicores;
    }
    for (const Node& node : snapshot.nodes) RC_ASSERT(node.allocatable_millicores - used[node.name] < 1000);
  });
}

TEST_CASE("more cores never lower the objective") {
  property("more cores", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed);
    ClusterSnapshot larger = snapshot;
    larger.nodes.push_back({.name = "extra", .allocatable_millicores = 8000});
    RC_ASSERT(value_of(larger, decide(larger, kConfig)) >= 0.999 * value_of(snapshot, decide(snapshot, kConfig)));
  });
}

TEST_CASE("removing a job never lowers the total value of the others") {
  property("one less", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed);
    if (snapshot.jobs.size() < 2) return;
    const JobId gone = snapshot.jobs[seed % snapshot.jobs.size()].id;
    ClusterSnapshot fewer = snapshot;
    std::erase_if(fewer.jobs, [&](const Job& job) { return job.id == gone; });
    Plan before = decide(snapshot, kConfig);
    std::erase_if(before.jobs, [&](const JobPlan& job) { return job.id == gone; });
    // Its host's share is no longer divided with it; the floors of the others can only grow into it.
    RC_ASSERT(value_of(fewer, decide(fewer, kConfig)) >= 0.999 * value_of(snapshot, before));
  });
}

TEST_CASE("no plan is worth less than leaving everything as it is") {
  property("no worse", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed);
    const Plan plan = decide(snapshot, kConfig);
    Plan as_it_is = plan;
    for (JobPlan& job : as_it_is.jobs) job.planned_supply_ratio = job.supply_ratio;
    RC_ASSERT(value_of(snapshot, plan) >= 0.999 * value_of(snapshot, as_it_is));
  });
}

TEST_CASE("equal jobs get equal parts") {
  property("equals", [](unsigned seed) {
    ClusterSnapshot snapshot;
    snapshot.taken_at_seconds = kNowSeconds;
    const std::int64_t cores = 8 + seed % 17;
    snapshot.nodes = {{.name = "h", .allocatable_millicores = 16'000, .gpus = 8},
                      {.name = "n", .allocatable_millicores = 1000 * cores}};
    const FluidJob physics{.demand = 40'000, .local_rate = 1000, .remote_rate = 770, .local_cores = 8};
    for (const char* name : {"a", "b"}) {
      Job job = MakeJob(name).gpus(4).obj();
      job.ranks = 4;
      job.local_adjustable = true;
      job.hosts = {{"h", 4, 4, 8000, 16'000}};
      job.observation.measurement = physics.steady(0, kNowSeconds - 5);
      snapshot.jobs.push_back(job);
    }
    const Plan plan = decide(snapshot, kConfig);
    RC_ASSERT(plan.jobs[0].local[0].request_millicores == plan.jobs[1].local[0].request_millicores);
    RC_ASSERT(std::abs(plan.jobs[0].workers - plan.jobs[1].workers) <= 1);
    RC_ASSERT(plan.jobs[0].workers + plan.jobs[1].workers == cores);
  });
}

TEST_CASE("a higher priority never leaves a job with less") {
  property("joint priority", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed, {.priorities = true});
    if (snapshot.jobs.empty()) return;
    Job& job = snapshot.jobs[seed % snapshot.jobs.size()];
    const double before = plan_of(decide(snapshot, kConfig), job.id.name).planned_supply_ratio;
    job.priority += 1 + static_cast<int>(seed % 3);
    // Where the curve is flat, pieces end where they end.
    RC_ASSERT(plan_of(decide(snapshot, kConfig), job.id.name).planned_supply_ratio >= std::min(0.97 * before, 1.15));
  });
}

TEST_CASE("only workers held without metrics exceed a quota, never a minimum") {
  property("quota", [](unsigned seed) {
    const bool blind = seed % 2 == 0;
    const ClusterSnapshot snapshot = random_cluster(seed, {.missing_metrics = blind, .quotas = true, .minima = blind});
    std::int64_t millicores = 0, held = 0;
    for (const JobPlan& plan : decide(snapshot, kConfig).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      if (job.quota.empty()) continue;
      millicores += plan.workers * job.worker_millicores;
      if (!plan.estimate.metrics_usable()) held += job.allocated_workers * job.worker_millicores;
    }
    RC_ASSERT(millicores <= std::max(held, *snapshot.quotas[0].worker_millicores));
  });
}

TEST_CASE("a budget is never exceeded, and used up to the last worker that can be paid for") {
  property("joint budget", [](unsigned seed) {
    const ClusterSnapshot cluster = random_cluster(seed, {.prices = true, .cheap_hosts = true, .budget = true});
    if (!cluster.budget_per_hour) return;
    RC_ASSERT(cost_of(applied(cluster, decide(cluster, kConfig))) <= *cluster.budget_per_hour + 1e-6);
    const std::optional<ClusterSnapshot> snapshot = settled(cluster, kConfig);
    RC_ASSERT(snapshot.has_value());
    const Plan plan = decide(*snapshot, kConfig);
    const ClusterSnapshot after = applied(*snapshot, plan);
    const double left = *snapshot->budget_per_hour - cost_of(after);
    const bool refused = std::any_of(plan.jobs.begin(), plan.jobs.end(),
                                     [](const JobPlan& job) { return job.reason == Reason::kBudget; });
    for (const Node& node : after.nodes)
      RC_ASSERT(!refused || room_on(node, after) < 1000 || price_per_core(node) > left - 1e-6);
  });
}

TEST_CASE("a job that claims ten times its demand leaves the others their floors") {
  property("greedy claim", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed);
    if (snapshot.jobs.size() < 2) return;
    Measurement& lie = *snapshot.jobs[0].observation.measurement;
    lie.wait_share = 1 - lie.compute_share / 10;
    lie.compute_share /= 10;
    for (const JobPlan& plan : decide(snapshot, kConfig).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      const double share = static_cast<double>(job.hosts[0].request_millicores);  // the clusters start at the shares
      const double need = 1.05 * 1000 * plan.estimate.knee_cores;
      RC_ASSERT(static_cast<double>(local_of(plan)) >= std::min(share, need) - 1);
    }
  });
}

TEST_CASE("metrics vanish: everything stays as it is") {
  property("frozen", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed);
    const Plan first = decide(snapshot, kConfig);
    snapshot = applied(snapshot, first);
    for (Job& job : snapshot.jobs) job.observation = {std::nullopt, "Prometheus is away"};
    snapshot.taken_at_seconds += 600;
    const Plan frozen = decide(snapshot, kConfig);
    for (std::size_t i = 0; i < first.jobs.size(); ++i) {
      RC_ASSERT(frozen.jobs[i].workers == first.jobs[i].workers);
      RC_ASSERT(local_of(frozen.jobs[i]) >= local_of(first.jobs[i]));
      RC_ASSERT(frozen.jobs[i].victims.empty());
    }
  });
}

TEST_CASE("noise does not shake the workers") {
  property("churn", [](unsigned seed) {
    const Churn churn = churn_under_noise(seed, {.noise = 0.05}, kConfig);
    RC_ASSERT(churn.changed <= 20 + churn.held / 3);
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
