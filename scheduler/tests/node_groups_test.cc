// Jobs whose workers may not use the same nodes.
#include <map>
#include <string>
#include <vector>

#include "scheduler/testing/builders.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

constexpr int kPlain = 0;
constexpr int kSpecial = 1;

Node node(const std::string& name, int cores, int group) {
  return {.name = name, .allocatable_millicores = 1000 * cores, .group = group};
}

// Needs twelve workers beside its own core.
MakeJob hungry(const std::string& name) {
  return MakeJob(name).measures(FluidJob{.demand = 10'000, .local_rate = 1000, .remote_rate = 1000, .local_cores = 1});
}

Job closed(const MakeJob& job, std::vector<bool> groups) {
  Job made = job.obj();
  made.closed_groups = std::move(groups);
  return made;
}

std::map<std::string, int> new_workers_by_node(const JobPlan& plan) {
  std::map<std::string, int> count;
  for (const std::string& node : plan.new_worker_nodes) ++count[node];
  return count;
}

TEST_CASE("each job gets the nodes that take its workers, and who has a choice leaves room to who has none") {
  struct Row {
    const char* situation;
    std::vector<bool> of_a, of_b;  // closed to the jobs a and b
    int plain_cores, special_cores;
    int workers_of_a, workers_of_b;
  };
  const Row rows[] = {
      {"both may use all", {}, {}, 4, 4, 4, 4},
      {"each has its own", {false, true}, {true, false}, 6, 3, 6, 3},
      {"b has no choice", {}, {true, false}, 6, 4, 6, 4},
      {"a has no choice, and there is enough for both", {true, false}, {}, 4, 6, 5, 5},
      {"b may go nowhere", {}, {true, true}, 6, 4, 10, 0},
      {"no node is special", {}, {true, false}, 6, 0, 6, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    ClusterSnapshot snapshot = MakeSnapshot().obj();
    snapshot.nodes = {node("plain", row.plain_cores, kPlain)};
    if (row.special_cores > 0) snapshot.nodes.push_back(node("special", row.special_cores, kSpecial));
    snapshot.jobs = {closed(hungry("a"), row.of_a), closed(hungry("b"), row.of_b)};
    const Plan plan = decide(snapshot, {});
    CHECK(plan_of(plan, "a").workers == row.workers_of_a);
    CHECK(plan_of(plan, "b").workers == row.workers_of_b);
    CHECK(broken_rules(snapshot, plan).empty());
  }
}

TEST_CASE("a worker that may choose leaves even the best nodes to those that need them") {
  // "c" has "n2" alone. So "b" needs "n1", which is the emptiest, and would be the first for "a".
  ClusterSnapshot snapshot = MakeSnapshot().obj();
  snapshot.nodes = {node("n0", 2, 0), node("n1", 3, 1), node("n2", 2, 2)};
  snapshot.jobs = {closed(hungry("a").max(2), {false, false, true}), closed(hungry("b").max(3), {true, false, false}),
                   closed(hungry("c").max(2), {true, true, false})};
  const Plan plan = decide(snapshot, {});
  CHECK(new_workers_by_node(plan_of(plan, "a")) == std::map<std::string, int>{{"n0", 2}});
  CHECK(new_workers_by_node(plan_of(plan, "b")) == std::map<std::string, int>{{"n1", 3}});
  CHECK(new_workers_by_node(plan_of(plan, "c")) == std::map<std::string, int>{{"n2", 2}});
}

TEST_CASE("a worker that fits only on nodes that others need takes them") {
  // Two free pieces on "s1" and "s2" add up to a worker of "a" in sum, not on a node.
  ClusterSnapshot snapshot = MakeSnapshot().obj();
  snapshot.nodes = {node("plain", 2, kPlain), node("s1", 1, kSpecial), node("s2", 1, kSpecial)};
  Job large = closed(hungry("a").priority(1).max(1), {});
  large.worker_millicores = 2000;
  snapshot.jobs = {large, closed(hungry("b").max(2), {false, true})};
  const Plan plan = decide(snapshot, {});
  CHECK(new_workers_by_node(plan_of(plan, "a")) == std::map<std::string, int>{{"plain", 1}});
  CHECK(plan_of(plan, "b").workers == 0);
}

// "near" may use only its own host, of 12 cores, and needs all of them. "far" has its feeders there, too.
struct SharedHost {
  ClusterSnapshot snapshot = MakeSnapshot().obj();

  SharedHost() {
    Node host = node("host", 12, kPlain);
    host.gpus = 8;
    snapshot.nodes = {host, node("special", 16, kSpecial)};
    snapshot.jobs = {feeding("far", 8, {true}), feeding("near", 20, {false, true})};
  }

  static Job feeding(const std::string& name, double knee, std::vector<bool> closed_groups) {
    Job job = closed(MakeJob(name).gpus(1).measures(
                         FluidJob{.demand = 1000 * knee, .local_rate = 1000, .remote_rate = 1000, .local_cores = 1}),
                     std::move(closed_groups));
    job.local_adjustable = true;
    job.hosts = {{"host", 1, 1, 1000, 1000}};
    return job;
  }

  std::int64_t local_of(const Plan& plan, const char* name) const {
    return plan_of(plan, name).local[0].request_millicores;
  }
};

TEST_CASE("feeders leave cores to a job that has no others, and get workers elsewhere for them") {
  SharedHost cluster;
  const Plan plan = decide(cluster.snapshot, {});
  CHECK(cluster.local_of(plan, "far") < 3000);  // its floor is 1.5 cores
  CHECK(cluster.local_of(plan, "near") > 9000);
  CHECK(plan_of(plan, "far").workers >= 6);
  CHECK(plan_of(plan, "far").planned_supply_ratio >= 1);
  CHECK(plan_of(plan, "far").reason == Reason::kNeedMet);
  CHECK(plan_of(plan, "near").reason == Reason::kCpu);
  CHECK(broken_rules(cluster.snapshot, plan).empty());
}

TEST_CASE("feeders keep their cores where no worker can take their place") {
  struct Row {
    const char* situation;
    void (*set)(ClusterSnapshot& snapshot);
  };
  const Row rows[] = {
      {"the other nodes are full", [](ClusterSnapshot& s) { s.nodes[1].requested_by_others_millicores = 16'000; }},
      {"they are closed to it",
       [](ClusterSnapshot& s) {
         s.jobs[0].closed_groups = {true, true};
       }},
      {"it may have no workers", [](ClusterSnapshot& s) { s.jobs[0].max_workers = 0; }},
      {"its quota is used up",
       [](ClusterSnapshot& s) {
         s.quotas = {{"team", 0}}, s.jobs[0].quota = "team";
       }},
      {"it ends before a worker pays", [](ClusterSnapshot& s) { s.jobs[0].remaining_samples = 1000; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    SharedHost cluster;
    row.set(cluster.snapshot);
    const Plan plan = decide(cluster.snapshot, {});
    CHECK(plan_of(plan, "far").workers == 0);
    CHECK(cluster.local_of(plan, "far") > 5000);
    CHECK(broken_rules(cluster.snapshot, plan).empty());
  }
}

TEST_CASE("a job that no node takes is told so, and its nodes are no capacity") {
  ClusterSnapshot snapshot = MakeSnapshot().obj();
  snapshot.nodes = {node("plain", 8, kPlain)};
  snapshot.jobs = {closed(hungry("a"), {true})};
  const Plan plan = decide(snapshot, {});
  CHECK(plan.capacity_millicores == 0);
  CHECK(plan_of(plan, "a").reason == Reason::kCpu);
  CHECK(plan_of(plan, "a").explanation.starts_with("No node takes its workers, by their node selector"));
  snapshot.jobs.push_back(closed(hungry("b"), {}));
  CHECK(decide(snapshot, {}).capacity_millicores == 8000);
}

TEST_CASE("workers on a node that was closed to them stay while they are needed, and go first") {
  ClusterSnapshot snapshot = MakeSnapshot().obj();
  snapshot.nodes = {node("plain", 8, kPlain), node("special", 4, kSpecial)};
  MakeJob job("a");
  job.holds(2, "special").holds(2, "plain");
  SECTION("needed") {
    job.measures(FluidJob{.demand = 10'000, .local_rate = 1000, .remote_rate = 1000, .local_cores = 1});
    snapshot.jobs = {closed(job, {false, true})};
    const Plan plan = decide(snapshot, {});
    CHECK(plan_of(plan, "a").workers == 10);
    CHECK(new_workers_by_node(plan_of(plan, "a")) == std::map<std::string, int>{{"plain", 6}});
  }
  SECTION("two are too many") {
    job.max(2).measures(FluidJob{.demand = 10'000, .local_rate = 1000, .remote_rate = 1000, .local_cores = 1});
    snapshot.jobs = {closed(job, {false, true})};
    CHECK(plan_of(decide(snapshot, {}), "a").victims == std::vector<std::string>{"a-worker-1", "a-worker-0"});
  }
}

TEST_CASE("from the 64th group on sums promise too much, and placement takes it back") {
  ClusterSnapshot snapshot = MakeSnapshot().obj();
  for (int group = 0; group < 70; ++group) snapshot.nodes.push_back(node("n" + std::to_string(group), 1, group));
  std::vector<bool> all_but_two(70, true);
  all_but_two[3] = all_but_two[68] = false;
  snapshot.jobs = {closed(hungry("a"), all_but_two), closed(hungry("b"), {})};
  const Plan plan = decide(snapshot, {});
  CHECK(plan_of(plan, "a").workers == 2);
  CHECK(plan_of(plan, "b").workers >= 10);
  CHECK(broken_rules(snapshot, plan).empty());
}

}  // namespace
}  // namespace sluice::scheduler::testing
