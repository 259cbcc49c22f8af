// What the bids of growth.cc are made of: what a job is worth, and how large its next piece is.
#include <cstdlib>

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

Node gpu_host(const std::string& name) { return {.name = name, .allocatable_millicores = 24'000, .gpus = 8}; }

Node with_network(Node node, double bytes_per_second) {
  node.network_bytes_per_second = bytes_per_second;
  return node;
}

// A job without GPUs that needs ten cores and has one.
Job needing_ten(const std::string& name, int weight, int ranks) {
  Job job = MakeJob(name).weight(weight).measures(FluidJob{.demand = 10'000}).obj();
  job.ranks = ranks;
  return job;
}

TEST_CASE("what a job is worth, by objective: the heavier or larger of two has more of six cores, or both the same") {
  struct Row {
    const char* situation;
    Objective objective;
    int weight, ranks;  // of the one; the other has 100 and one
    int want_more;      // 1: the one; 0: neither
  };
  const Row rows[] = {
      {"throughput: ranks count where there is no GPU", Objective::kThroughput, 100, 4, 1},
      {"balanced: so they do", Objective::kBalanced, 100, 4, 1},
      {"completion time: one job is one job", Objective::kCompletionTime, 100, 4, 0},
      {"fair: so it is", Objective::kFair, 100, 4, 0},
      {"throughput: weight", Objective::kThroughput, 400, 1, 1},
      {"completion time: weight", Objective::kCompletionTime, 400, 1, 1},
      {"fair: weight", Objective::kFair, 10'000, 1, 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    // The other one has the first name, and so the first of two equal bids.
    const std::vector<Job> jobs = {needing_ten("one", row.weight, row.ranks), needing_ten("an-other", 100, 1)};
    Config config;
    config.objective = row.objective;
    const Plan plan = decide({kNowSeconds, {{.name = "n", .allocatable_millicores = 6000}}, jobs, {}, {}}, config);
    const int one = plan_of(plan, "one").workers, other = plan_of(plan, "an-other").workers;
    CHECK(one + other == 6);
    CHECK((one > other) == (row.want_more > 0));
    CHECK(std::abs(one - other) <= (row.want_more > 0 ? 6 : 1));
  }
}

// A trainer with so many GPUs on each of its hosts, its share there, and a need of so many cores.
Job on_hosts(const std::string& name, const std::vector<std::string>& hosts, int gpus, double knee) {
  const std::int64_t share = std::int64_t{3000} * gpus;
  Job job = MakeJob(name).obj();
  job.local_adjustable = true;
  job.ranks = static_cast<int>(hosts.size());
  job.gpus = gpus * job.ranks;
  job.hosts.clear();
  for (const std::string& host : hosts) job.hosts.push_back({host, 1, gpus, share, share});
  const FluidJob physics{.demand = 1000 * knee, .local_cores = static_cast<double>(share) / 1000 * job.ranks};
  job.observation = {physics.steady(0, kNowSeconds), ""};
  return job;
}

TEST_CASE("a gang's hosts get alike, also when they do not get all: the rank with least data sets the pace") {
  // Twelve cores are left on each host. Another job takes twelve of the twenty-four for workers, wherever they are.
  Job other = MakeJob("other").weight(10'000).max(12).measures(FluidJob{.demand = 100'000}).obj();
  const Plan plan =
      decide({kNowSeconds, {gpu_host("g"), gpu_host("h")}, {on_hosts("gang", {"g", "h"}, 4, 40), other}, {}, {}}, {});
  CHECK(plan_of(plan, "other").workers == 12);
  const std::vector<LocalCpu>& local = plan_of(plan, "gang").local;
  CHECK(local[0].request_millicores + local[1].request_millicores == 36'000);
  CHECK(std::abs(local[0].request_millicores - local[1].request_millicores) <= 1000);
}

TEST_CASE("equal trainers on a host share what an idle pair of GPUs leaves there, to half a core") {
  std::vector<Job> jobs;
  for (const char* name : {"a", "b", "c"}) jobs.push_back(on_hosts(name, {"g"}, 2, 50));
  const Plan plan = decide({kNowSeconds, {gpu_host("g")}, jobs, {}, {}}, {});
  std::int64_t sum = 0;
  for (const JobPlan& job : plan.jobs) {
    sum += job.local[0].request_millicores;
    CHECK(std::abs(job.local[0].request_millicores - 8000) <= 500);
  }
  CHECK(sum == 24'000);
}

TEST_CASE("a host of the job without a rank of it receives nothing, and its full network binds no job") {
  // A job that is alone in the cluster sends three times the capacity of the network there.
  Job off = MakeJob("off").mode(Mode::kOff).holds(3, "n").measures(FluidJob{.demand = 8000}).obj();
  Job job = MakeJob("a").max(4).measures(FluidJob{.demand = 8000}).obj();
  off.bytes_per_sample = job.bytes_per_sample = 150'000;  // 115.5 MB/s from a worker
  off.hosts[0].node = "launcher";
  job.hosts = {{"trainer", 1, 0, 1000, 1000}, {"launcher", 0, 0, 0, 0}};
  const ClusterSnapshot snapshot{kNowSeconds,
                                 {{.name = "n", .allocatable_millicores = 64'000},
                                  with_network({.name = "launcher"}, 1e8),
                                  with_network({.name = "trainer"}, 1e9)},
                                 {off, job},
                                 {},
                                 {}};
  CHECK(plan_of(decide(snapshot, {}), "a").workers == 4);
}

TEST_CASE("the size of workers that a job will not have makes no room of the rests of nodes") {
  // Workers of a core: four beside the trainer's share of the host, one on the other node. Counted to a twentieth of a
  // core there would be one more in the two rests. Then the trainer's feeders took the CPU that the fifth worker needs.
  Job trainer = on_hosts("trainer", {"h"}, 4, 50);
  trainer.hosts[0].request_millicores = 4000;
  trainer.observation = {FluidJob{.demand = 50'000, .local_cores = 4}.steady(0, kNowSeconds), ""};
  const Job hungry = MakeJob("hungry").weight(10'000).max(5).measures(FluidJob{.demand = 100'000}).obj();
  const Node host{.name = "h", .allocatable_millicores = 8500, .gpus = 8};
  const Node other{.name = "n", .allocatable_millicores = 1500};
  for (const MakeJob& idle : {MakeJob("idle").not_running(), MakeJob("idle").mode(Mode::kOff),
                              MakeJob("idle").placement(Placement::kLocal)}) {
    const Job tiny = MakeJob(idle).worker_millicores(50).obj();
    const Plan plan = decide({kNowSeconds, {host, other}, {trainer, hungry, tiny}, {}, {}}, {});
    CHECK(plan_of(plan, "hungry").workers == 5);
    CHECK(plan_of(plan, "trainer").local[0].request_millicores == 4500);
  }
}

TEST_CASE("of several limits that are used up the first is named: room, before a quota that others have overdrawn") {
  Job off = MakeJob("off").mode(Mode::kOff).holds(2, "n").obj();
  Job job = MakeJob("a").measures(FluidJob{.demand = 8000}).obj();
  off.quota = job.quota = "team";
  ClusterSnapshot snapshot{kNowSeconds, {{.name = "n", .allocatable_millicores = 2000}}, {off, job}, {}, {}};
  snapshot.quotas = {{"team", 1000}};
  CHECK(to_string(plan_of(decide(snapshot, {}), "a").reason) == "Cpu");
  snapshot.nodes[0].allocatable_millicores = 64'000;
  CHECK(to_string(plan_of(decide(snapshot, {}), "a").reason) == "Quota");
}

}  // namespace
}  // namespace sluice::scheduler::testing
