// The guarantees of decide.h on clusters that have everything at once, under every objective.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <rapidcheck.h>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/model/progress.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

using Sentences = std::vector<std::string>;

// CPU of the workers on a node that nothing justifies taking.
std::int64_t immovable(const ClusterSnapshot& snapshot, const Plan& plan, const std::string& node) {
  std::int64_t millicores = 0;
  for (const Job& job : snapshot.jobs) {
    const JobPlan& its = plan_of(plan, job.id.name);
    if (job.mode == Mode::kAuto && (its.estimate.metrics_usable() || !job.running)) continue;
    for (const Worker& worker : job.workers) millicores += worker.node == node ? job.worker_millicores : 0;
  }
  return millicores;
}

// What the allocation is worth to the objective: its own worth of each job times the progress that its curve gives.
// Fair: what its bids add up to, whose derivative is the slope over the cube of the progress.
double value_of(const ClusterSnapshot& snapshot, const Plan& plan, const Config& config) {
  NodeTable nodes(snapshot.nodes, 1000);
  std::vector<JobPlan> plans;
  double value = 0;
  for (const JobAllocation& c : make_allocations(snapshot, nodes, config, plans)) {
    const JobPlan& job = plan_of(plan, c.job->id.name);
    if (!c.job->running || job.estimate.confidence == Confidence::kNone) continue;
    const double f = wanted_progress(job, *c.job, config);
    value += config.objective == Objective::kFair ? -c.worth / (2 * std::pow(std::max(f, 0.01), 2)) : c.worth * f;
  }
  return value;
}

// The same, without a price at which it ends: what a job stops at for its price depends on the sizes of the pieces.
Config without_price(unsigned seed) {
  Config config = some_config(seed);
  if (config.objective == Objective::kCost) config.objective = Objective::kBalanced;
  return config;
}

// Not lower, but for the size of the last pieces.
bool no_lower(double value, double than, double tolerance) { return value >= than - tolerance * std::abs(than); }

TEST_CASE("whatever the cluster and the objective: no plan breaks a rule") {
  property("rules", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed, everything());
    RC_ASSERT(broken_rules(snapshot, decide(snapshot, some_config(seed))) == Sentences{});
  });
}

TEST_CASE("nor does any plan that follows from carrying it out") {
  property("rules again", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed, everything());
    const Config config = some_config(seed);
    for (int round = 0; round < 4; ++round) {
      snapshot = applied(snapshot, decide(snapshot, config));
      RC_ASSERT(broken_rules(snapshot, decide(snapshot, config)) == Sentences{});
    }
  });
}

TEST_CASE("the order of nodes, jobs, workers and quotas means nothing under any objective") {
  property("permutation of everything", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed, everything());
    const Config config = some_config(seed);
    const std::string want = text_of(decide(snapshot, config));
    std::mt19937 random(seed);
    std::shuffle(snapshot.nodes.begin(), snapshot.nodes.end(), random);
    std::shuffle(snapshot.jobs.begin(), snapshot.jobs.end(), random);
    std::shuffle(snapshot.quotas.begin(), snapshot.quotas.end(), random);
    for (Job& job : snapshot.jobs) std::shuffle(job.workers.begin(), job.workers.end(), random);
    RC_ASSERT(text_of(decide(snapshot, config)) == want);
  });
}

TEST_CASE("on the same measurements every cluster comes to rest, whatever the sizes, limits and modes") {
  property("rest", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed, everything());
    const Config config = some_config(seed);
    std::vector<int> last;
    bool at_rest = false;
    for (int round = 0; round < 10 && !at_rest; ++round) {
      const Plan plan = decide(snapshot, config);
      std::vector<int> now;
      for (const JobPlan& job : plan.jobs) now.push_back(job.workers);
      at_rest = now == last;
      last = now;
      snapshot = applied(snapshot, plan);
    }
    RC_ASSERT(at_rest);
  });
}

TEST_CASE("every job keeps its part of each of its hosts, gangs and restricted hosts included") {
  property("entitlement everywhere", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed, {.missing_metrics = true,
                                                           .priorities = true,
                                                           .quotas = true,
                                                           .gangs = true,
                                                           .fixed_feeders = true,
                                                           .worker_sizes = true,
                                                           .workers_anywhere = true,
                                                           .minima = true,
                                                           .cordoned = true});
    const Plan plan = decide(snapshot, some_config(seed));
    for (const JobPlan& job_plan : plan.jobs) {
      const Job& job = job_of(snapshot, job_plan.id);
      for (std::size_t i = 0; i < job_plan.local.size(); ++i) {
        const TrainerHost& host = job.hosts[i];
        const Node& node = node_of(snapshot, host.node);
        const std::int64_t room = node.allocatable_millicores - node.requested_by_others_millicores;
        const std::int64_t share = room * host.gpus / 8;
        const double part = static_cast<double>(host.ranks) / job.ranks;
        const double knee = 1000 * job_plan.estimate.knee_cores * part;
        const std::int64_t need = knee == 0 ? share : static_cast<std::int64_t>(1.05 * knee);
        const std::int64_t floor = std::min(share, std::max<std::int64_t>(1000 * host.gpus, need)) - 2;
        RC_ASSERT(job_plan.local[i].request_millicores >= std::min(floor, host.request_millicores));
        RC_ASSERT(job_plan.local[i].request_millicores >= floor - immovable(snapshot, plan, host.node));
      }
    }
  });
}

TEST_CASE(
    "metrics vanish for ten minutes: no job loses a worker or a core, though a newcomer of the highest priority") {
  property("frozen everything", [](unsigned seed) {
    ClusterShape shape = everything();
    shape.missing_metrics = false;
    ClusterSnapshot snapshot = random_cluster(seed, shape);
    const Config config = some_config(seed);
    for (int round = 0; round < 3; ++round) snapshot = applied(snapshot, decide(snapshot, config));
    for (Job& job : snapshot.jobs) job.observation = {std::nullopt, "Prometheus is away"};
    snapshot.taken_at_seconds += 600;
    const FluidJob physics{.demand = 50'000, .local_cores = 1};
    Job newcomer = MakeJob("newcomer").priority(99).measures(physics).obj();
    newcomer.observation.measurement->window_end_seconds = snapshot.taken_at_seconds;
    ClusterSnapshot with_newcomer = snapshot;
    with_newcomer.jobs.push_back(newcomer);
    const Plan plan = decide(with_newcomer, config);
    for (const Job& job : snapshot.jobs) {
      const JobPlan& its = plan_of(plan, job.id.name);
      std::int64_t before = 0;
      for (const TrainerHost& host : job.hosts) before += host.request_millicores;
      if (job.local_adjustable) RC_ASSERT(local_of(its) >= before);
      if (job.mode == Mode::kAuto && job.placement == Placement::kLocal) continue;
      const int stands = std::min(job.allocated_workers, job.max_workers);
      RC_ASSERT(its.workers == std::max(stands, job.min_workers) || job.mode != Mode::kAuto ||
                (its.workers >= stands && its.workers < job.min_workers && is_limit(its.reason)));
      RC_ASSERT(its.victims.size() <=
                static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, std::ssize(job.workers) - stands)));
    }
  });
}

TEST_CASE("more cores never lower the objective, whichever it is") {
  property("more cores, all objectives", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed, {.gangs = true, .fixed_feeders = true, .minima = true});
    const Config config = without_price(seed);
    ClusterSnapshot larger = snapshot;
    larger.nodes.push_back({.name = "extra", .allocatable_millicores = 1000 * (1 + seed % 64)});
    RC_ASSERT(no_lower(value_of(larger, decide(larger, config), config),
                       value_of(snapshot, decide(snapshot, config), config), 0.002));
  });
}

TEST_CASE("removing a job never lowers the total value of the others, whatever the objective") {
  property("one less, all objectives", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed, {.gangs = true, .fixed_feeders = true, .minima = true});
    if (snapshot.jobs.size() < 2) return;
    const Config config = without_price(seed);
    const JobId gone = snapshot.jobs[seed % snapshot.jobs.size()].id;
    ClusterSnapshot fewer = snapshot;
    std::erase_if(fewer.jobs, [&](const Job& job) { return job.id == gone; });
    RC_ASSERT(no_lower(value_of(fewer, decide(fewer, config), config),
                       value_of(fewer, decide(snapshot, config), config), 0.002));
  });
}

TEST_CASE("a higher priority never leaves a job with less, whatever the objective") {
  property("priority, all objectives", [](unsigned seed) {
    ClusterSnapshot snapshot =
        random_cluster(seed, {.priorities = true, .gangs = true, .fixed_feeders = true, .minima = true});
    if (snapshot.jobs.empty()) return;
    // By price, a job that gets more of its own host stops sooner: its hours are cheaper.
    const Config config = without_price(seed);
    Job& job = snapshot.jobs[seed % snapshot.jobs.size()];
    const double before = plan_of(decide(snapshot, config), job.id.name).planned_supply_ratio;
    job.priority += 1 + static_cast<int>(seed % 3);
    RC_ASSERT(plan_of(decide(snapshot, config), job.id.name).planned_supply_ratio >= std::min(0.97 * before, 1.15));
  });
}

TEST_CASE("equals get equal parts, however many they are and whatever the objective") {
  property("equals, all objectives", [](unsigned seed) {
    std::mt19937 random(seed);
    const int jobs = 2 + static_cast<int>(random() % 7);
    const int cores = 2 + static_cast<int>(random() % 80);
    const double demand = 5000.0 * (1 + random() % 8);
    MakeSnapshot snapshot;
    snapshot.node("n", 1000 * cores);
    for (int i = 0; i < jobs; ++i)
      snapshot.job(MakeJob("j" + std::to_string(i)).gpus(4).measures(FluidJob{.demand = demand}));
    const Plan plan = decide(snapshot.obj(), some_config(seed));
    const auto [least, most] = std::minmax_element(plan.jobs.begin(), plan.jobs.end(),
                                                   [](const auto& a, const auto& b) { return a.workers < b.workers; });
    RC_ASSERT(most->workers - least->workers <= 1);
  });
}

TEST_CASE("a job that claims ten times its demand gets no core before its honest twin is fed") {
  property("liar", [](unsigned seed) {
    std::mt19937 random(seed);
    const FluidJob honest{.demand = 1000.0 * (3 + random() % 40)};
    const auto cores = static_cast<std::int64_t>(2 + random() % 60);
    Measurement lie = honest.steady(0, kNowSeconds);
    lie.compute_share /= 10;
    lie.wait_share = 1 - lie.compute_share;
    Config config = some_config(seed);
    config.objective =
        kObjectives[seed % 3];  // fair: who says that he has the least progress goes first; that is its sense
    const Plan plan = decide(MakeSnapshot()
                                 .node("n", 1000 * cores)
                                 .job(MakeJob("honest").measures(honest))
                                 .job(MakeJob("liar").measures(lie))
                                 .obj(),
                             config);
    const JobPlan& fed = plan_of(plan, "honest");
    RC_ASSERT(fed.workers >= plan_of(plan, "liar").workers || fed.planned_supply_ratio >= 1);
  });
}

TEST_CASE("a claim of ten times the demand leaves the floors of all others alone, under every objective") {
  property("greedy everywhere", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed, {.priorities = true, .gangs = true, .fixed_feeders = true});
    if (snapshot.jobs.size() < 2) return;
    Measurement& lie = *snapshot.jobs[0].observation.measurement;
    lie.wait_share = 1 - lie.compute_share / 10;
    lie.compute_share /= 10;
    const Plan plan = decide(snapshot, some_config(seed));
    for (const Job& job : snapshot.jobs) {
      const JobPlan& its = plan_of(plan, job.id.name);
      for (std::size_t i = 0; i < its.local.size(); ++i) {
        const double knee = 1000 * its.estimate.knee_cores * job.hosts[i].ranks / job.ranks;
        const Node& node = node_of(snapshot, job.hosts[i].node);
        const double share = static_cast<double>(node.allocatable_millicores - node.requested_by_others_millicores) *
                             job.hosts[i].gpus / 8;
        RC_ASSERT(static_cast<double>(its.local[i].request_millicores) >= std::min(share, 1.05 * knee) - 2);
      }
    }
  });
}

TEST_CASE(
    "a node is drained and its workers are evicted: the other nodes take them up, and no job is below its floor") {
  property("drained", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed, {.most_hosts = 3, .most_cpu_nodes = 6, .gangs = true});
    const Config config = some_config(seed);
    for (int round = 0; round < 3; ++round) snapshot = applied(snapshot, decide(snapshot, config));
    std::vector<Node*> cpu_nodes;
    for (Node& node : snapshot.nodes)
      if (node.gpus == 0) cpu_nodes.push_back(&node);
    if (cpu_nodes.empty()) return;
    Node& drained = *cpu_nodes[seed % cpu_nodes.size()];
    drained.schedulable = false;
    const Plan warned = decide(snapshot, config);
    RC_ASSERT(broken_rules(snapshot, warned) == Sentences{});
    for (Job& job : snapshot.jobs)
      std::erase_if(job.workers, [&](const Worker& worker) { return worker.node == drained.name; });
    const Plan plan = decide(snapshot, config);
    RC_ASSERT(broken_rules(snapshot, plan) == Sentences{});
    const ClusterSnapshot after = applied(snapshot, plan);
    std::map<std::string, std::int64_t> free;
    for (const Node& node : after.nodes) free[node.name] = node.schedulable ? node.allocatable_millicores : 0;
    bool refused = false;
    for (const Job& job : after.jobs) {
      for (const TrainerHost& host : job.hosts) free[host.node] -= host.request_millicores;
      for (const Worker& worker : job.workers) free[worker.node] -= job.worker_millicores;
      const JobPlan& its = plan_of(plan, job.id.name);
      refused |= its.reason == Reason::kCpu;
      const double knee = 1000 * its.estimate.knee_cores;
      const double share = static_cast<double>(node_of(after, job.hosts[0].node).allocatable_millicores) * job.gpus / 8;
      RC_ASSERT(static_cast<double>(local_of(its)) >= std::min(share, 1.05 * knee) - 2 * std::ssize(job.hosts));
    }
    for (const auto& [node, millicores] : free) RC_ASSERT(!refused || millicores < 1000);
  });
}

TEST_CASE("no free core is left while a job is told that there is none, under every objective") {
  property("work-conserving, all objectives", [](unsigned seed) {
    const ClusterSnapshot snapshot =
        random_cluster(seed, {.priorities = true, .gangs = true, .fixed_feeders = true, .minima = true});
    const Plan plan = decide(snapshot, some_config(seed));
    RC_PRE(
        std::any_of(plan.jobs.begin(), plan.jobs.end(), [](const JobPlan& job) { return job.reason == Reason::kCpu; }));
    const ClusterSnapshot after = applied(snapshot, plan);
    for (const Node& node : after.nodes) RC_ASSERT(room_on(node, after) < 1000);
  });
}

TEST_CASE("noise of 5 % does not shake the workers of gangs and fixed feeders either, under any objective") {
  property("churn, all objectives", [](unsigned seed) {
    const ClusterShape shape{.noise = 0.05, .gangs = true, .fixed_feeders = true, .prices = true};
    // Four clusters together: one in 1,500 goes beyond such a bound alone.
    Churn sum;
    for (unsigned i = 0; i < 4; ++i) {
      const Churn churn = churn_under_noise(seed + i, shape, some_config(seed + i));
      sum.changed += churn.changed;
      sum.held += churn.held;
    }
    RC_ASSERT(sum.changed <= 4 * 20 + sum.held / 3);
  });
}

TEST_CASE("the sentence for people says how many, and names what binds") {
  property("sentence", [](unsigned seed) {
    const ClusterSnapshot snapshot = random_cluster(seed, everything());
    for (const JobPlan& plan : decide(snapshot, some_config(seed)).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      const auto says = [&](const std::string& words) { return plan.explanation.find(words) != std::string::npos; };
      RC_ASSERT(!says("nan") && !says("inf"));
      if (!job.running) continue;
      const std::string count = std::to_string(plan.recommended) + (plan.recommended == 1 ? " worker" : " workers");
      RC_ASSERT(says(count) || plan.recommended == 0);
      RC_ASSERT(says("Recommends ") == (job.mode == Mode::kRecommend));
      RC_ASSERT(says("Quota " + job.quota + " limits it to " + count) == (plan.reason == Reason::kQuota));
      RC_ASSERT((says("The budget limits it to " + count) || says("The budget of team limits it to " + count)) ==
                (plan.reason == Reason::kBudget));
      RC_ASSERT(says("The network limits it to " + count) == (plan.reason == Reason::kNetwork));
      RC_ASSERT(says("Anti-affinity or topology spread of its workers limits it to " + count) ==
                (plan.reason == Reason::kSpread));
      RC_ASSERT((says("No node has room for more than " + count) || says("No node takes its workers")) ==
                (plan.reason == Reason::kCpu));
      RC_ASSERT(plan.reason != Reason::kNoMetrics || says(plan.estimate.metrics_problem));
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
