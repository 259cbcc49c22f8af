#include "scheduler/allocate/spread.h"

#include <string>

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

constexpr int kZones = 0;
constexpr int kHosts = 1;

// Two zones: a with two nodes, b with one. The node without a zone is a host all the same.
std::vector<Node> nodes(int cores) {
  const auto node = [&](const std::string& name, int zone, int host) {
    return Node{.name = name, .allocatable_millicores = 1000 * cores, .domains = {zone, host}};
  };
  return {node("a1", 0, 0), node("a2", 0, 1), node("b1", 1, 2), node("outside", kNoDomain, 3)};
}

SpreadRule one_per_host() { return {.topology = kHosts, .most_ahead = 1}; }
SpreadRule one_per_zone() { return {.topology = kZones, .most_ahead = 1}; }
SpreadRule zones_within(int skew) {
  return {.topology = kZones, .most_ahead = skew, .counted_domains = {true, true}, .closed_outside = true};
}

// Needs twelve workers beside its own core.
MakeJob starved() {
  return MakeJob("a").measures(FluidJob{.demand = 10'000, .local_rate = 1000, .remote_rate = 1000, .local_cores = 1});
}

struct Rules {
  const char* situation;
  std::vector<SpreadRule> spread;
  int workers;
};

TEST_CASE("a job gets as many workers as the rules of their spread let start") {
  const Rules rows[] = {
      {"no rule: as many as there is CPU", {}, 12},
      {"a node of its own for each", {one_per_host()}, 4},
      {"a zone of its own for each; the node without a zone takes all that fit", {one_per_zone()}, 5},
      {"zones within one of each other: the smaller zone takes three, and the other one more", {zones_within(1)}, 7},
      {"within two", {zones_within(2)}, 8},
      {"both rules bind", {zones_within(1), one_per_host()}, 3},
  };
  for (const Rules& row : rows) {
    CAPTURE(row.situation);
    Job job = starved().obj();
    job.spread = row.spread;
    ClusterSnapshot snapshot = MakeSnapshot().obj();
    snapshot.nodes = nodes(3);
    snapshot.jobs = {job};
    const Plan plan = decide(snapshot, {});
    CHECK(plan.jobs[0].workers == row.workers);
    CHECK(std::ssize(plan.jobs[0].new_worker_nodes) == row.workers);
    CHECK((plan.jobs[0].reason == Reason::kSpread) == !row.spread.empty());
  }
}

TEST_CASE("workers that are there stay, however they are spread, and count") {
  struct Row {
    const char* situation;
    std::vector<SpreadRule> spread;
    std::vector<std::string> on;  // nodes of two workers each
    int workers;
  };
  const Row rows[] = {
      {"two on one node of the four", {one_per_host()}, {"a1"}, 5},
      {"two in zone a: b may have three, then a a fourth", {zones_within(1)}, {"a1"}, 7},
      {"four in zone a, and b holds three: no more", {zones_within(1)}, {"a1", "a2"}, 7},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    MakeJob made = MakeJob("a");
    for (const std::string& node : row.on) made.holds(2, node);
    Job job =
        made.measures(FluidJob{.demand = 10'000, .local_rate = 1000, .remote_rate = 1000, .local_cores = 1}).obj();
    job.spread = row.spread;
    ClusterSnapshot snapshot = MakeSnapshot().obj();
    snapshot.nodes = nodes(3);
    snapshot.jobs = {job};
    const JobPlan plan = decide(snapshot, {}).jobs[0];
    CHECK(plan.victims.empty());
    CHECK(plan.workers == row.workers);
  }
}

TEST_CASE("a domain that nothing can use holds the others back, and one that does not count holds nothing back") {
  Job job = MakeJob("a").obj();
  const std::vector<Node> all = nodes(3);
  SpreadRule rule = zones_within(1);
  const auto second_in_a = [&] {
    job.spread = {rule};
    Spread spread(job);
    spread.add(all[0], 1);
    return spread.admits(all[1]);
  };
  CHECK_FALSE(second_in_a());
  rule.counted_domains = {true, false};
  CHECK(second_in_a());
  rule.counted_domains = {};
  CHECK_FALSE(second_in_a());
}

TEST_CASE("a worker that makes way for another job may have a successor elsewhere in its zone") {
  Job low =
      MakeJob("low").holds(1, "a1").measures(FluidJob{.demand = 10'000, .local_rate = 1000, .local_cores = 1}).obj();
  low.spread = {one_per_zone()};
  const Job high = MakeJob("high")
                       .priority(1)
                       .worker_millicores(3000)
                       .measures(FluidJob{.demand = 10'000, .local_rate = 1000, .local_cores = 1})
                       .obj();
  ClusterSnapshot snapshot = MakeSnapshot().obj();
  snapshot.nodes = {{.name = "a1", .allocatable_millicores = 3000, .domains = {0}},
                    {.name = "a2", .allocatable_millicores = 2000, .domains = {0}}};
  snapshot.jobs = {low, high};
  const Plan plan = decide(snapshot, {});
  CHECK(plan_of(plan, "high").new_worker_nodes == std::vector<std::string>{"a1"});
  CHECK(plan_of(plan, "low").victims.size() == 1);
  CHECK(plan_of(plan, "low").new_worker_nodes.empty());
  CHECK(plan_of(decide(applied(snapshot, plan), {}), "low").new_worker_nodes == std::vector<std::string>{"a2"});
}

TEST_CASE("a worker that goes makes room in its domain again") {
  Job job = MakeJob("a").obj();
  job.spread = {zones_within(1)};
  const std::vector<Node> all = nodes(3);
  Spread spread(job);
  spread.add(all[0], 1);
  spread.add(all[2], 1);
  spread.add(all[0], 1);
  CHECK_FALSE(spread.admits(all[1]));
  spread.add(all[0], -1);
  CHECK(spread.admits(all[1]));
  spread.add(all[2], -1);
  CHECK_FALSE(spread.admits(all[1]));
  CHECK(spread.admits(all[2]));
}

}  // namespace
}  // namespace sluice::scheduler::testing
