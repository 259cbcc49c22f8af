// What data workers send to their trainers, and the networks that carry it.
#include <map>

#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

constexpr double kOfOneWorker = 770 * 150'000;  // bytes per second

Node linked_node(const std::string& name, std::int64_t cores, std::optional<double> carries_workers = std::nullopt) {
  Node node{.name = name, .allocatable_millicores = 1000 * cores};
  if (carries_workers) node.network_bytes_per_second = *carries_workers * kOfOneWorker * 1.01;
  return node;
}

// A trainer that needs eleven workers, with a rank on each of these hosts.
Job trainer(std::vector<std::string> hosts) {
  Job job = MakeJob("a").measures(FluidJob{.demand = 8000}).obj();
  job.bytes_per_sample = 150'000;
  job.ranks = static_cast<int>(hosts.size());
  job.hosts.clear();
  for (const std::string& host : hosts) job.hosts.push_back({.node = host, .limit_millicores = 1000 / job.ranks});
  return job;
}

Job with_workers(Job job, int count, const std::string& node) {
  for (int i = 0; i < count; ++i)
    job.workers.push_back(
        {"w" + std::to_string(job.workers.size()), node, true, kNowSeconds - 1000, kNowSeconds - 990});
  job.allocated_workers += count;
  const double cores = job.allocated_workers;
  job.observation.measurement = FluidJob{.demand = 8000}.steady(cores, kNowSeconds);
  return job;
}

TEST_CASE("a worker on its trainer's own host takes nothing of that host's network") {
  struct Row {
    const char* situation;
    std::vector<Node> nodes;
    Job job;
    int want_workers, want_on_h;
    Reason want_reason;
  };
  const Row rows[] = {
      {"no CPU on the host: what its network carries",
       {linked_node("n", 64), linked_node("h", 0, 4)},
       trainer({"h"}),
       4,
       0,
       Reason::kNetwork},
      {"CPU on the host for all others",
       {linked_node("n", 64), linked_node("h", 8, 4)},
       trainer({"h"}),
       11,
       7,
       Reason::kNeedMet},
      {"CPU on the host for three of them",
       {linked_node("n", 64), linked_node("h", 3, 4)},
       trainer({"h"}),
       7,
       3,
       Reason::kNetwork},
      {"CPU on the host alone, and a network that carries nothing",
       {linked_node("h", 64, 0)},
       trainer({"h"}),
       11,
       11,
       Reason::kNeedMet},
      {"a network that does not bind: nodes without trainers first",
       {linked_node("n", 64), linked_node("h", 8, 11)},
       trainer({"h"}),
       11,
       0,
       Reason::kNeedMet},
      {"two hosts, one with a narrow network and CPU for two",
       {linked_node("n", 64), linked_node("h", 2, 1.5), linked_node("g", 0)},
       trainer({"h", "g"}),
       5,
       2,
       Reason::kNetwork},
      {"two hosts with CPU and narrow networks: each sends half to the other",
       {linked_node("h", 8, 1), linked_node("g", 8, 1)},
       trainer({"h", "g"}),
       4,
       2,
       Reason::kNetwork},
      {"workers that were there stay on both nodes",
       {linked_node("n", 64), linked_node("h", 8, 4)},
       with_workers(with_workers(trainer({"h"}), 4, "n"), 3, "h"),
       11,
       7,
       Reason::kNeedMet},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = row.job;
    const ClusterSnapshot snapshot{kNowSeconds, row.nodes, {job}, {}, {}};
    const JobPlan plan = decide(snapshot, {}).jobs[0];
    CHECK(plan.workers == row.want_workers);
    CHECK(to_string(plan.reason) == to_string(row.want_reason));
    auto on_h = std::count(plan.new_worker_nodes.begin(), plan.new_worker_nodes.end(), "h");
    for (const Worker* worker : staying(job, plan)) on_h += worker->node == "h" ? 1 : 0;
    CHECK(on_h == row.want_on_h);
  }
}

TEST_CASE("two jobs on one host share its CPU and its network, and neither is counted twice") {
  Job one = trainer({"h"}), other = trainer({"h"});
  other.id.name = "b";
  const Plan plan = decide({kNowSeconds, {linked_node("n", 64), linked_node("h", 6, 4)}, {one, other}, {}, {}}, {});
  CHECK(plan.jobs[0].workers + plan.jobs[1].workers == 10);
}

TEST_CASE("a job whose host's network is narrow gets its share of scarce CPU, by workers on that host") {
  for (const auto& [carries_workers, want_workers] : {std::pair{1.0, 4}, {2.0, 5}}) {
    Job beside = MakeJob("b").measures(FluidJob{.demand = 8000}).obj();
    const Plan plan = decide(
        {kNowSeconds, {linked_node("n", 8), linked_node("h", 3, carries_workers)}, {trainer({"h"}), beside}, {}, {}},
        {});
    CHECK(plan.jobs[0].workers == want_workers);  // three of them on the host
    CHECK(plan.jobs[1].workers == 11 - want_workers);
    CHECK(plan.jobs[0].reason == Reason::kCpu);
  }
}

TEST_CASE("workers that a host's network no longer carries are stopped on other nodes, and not on the host itself") {
  const Job job = with_workers(with_workers(trainer({"h"}), 6, "n"), 3, "h");
  const JobPlan plan = decide({kNowSeconds, {linked_node("n", 64), linked_node("h", 3, 2)}, {job}, {}, {}}, {}).jobs[0];
  CHECK(plan.workers == 5);
  for (const std::string& victim : plan.victims) CHECK(victim < "w6");  // w6 to w8 are on the host
}

TEST_CASE("a worker elsewhere that the host's network does not carry goes, though the host has room for one") {
  const Job job = with_workers(trainer({"h"}), 1, "n");
  const JobPlan plan = decide({kNowSeconds, {linked_node("n", 64), linked_node("h", 1, 0)}, {job}, {}, {}}, {}).jobs[0];
  CHECK(plan.victims == std::vector<std::string>{"w0"});
}

// Bytes per second that each node receives and sends, once the plan has been carried out.
struct Traffic {
  std::map<std::string, double> received, sent;
};

double part_on(const Job& job, const std::string& node) {
  double ranks = 0;
  for (const TrainerHost& host : job.hosts) ranks += host.node == node ? host.ranks : 0;
  return ranks / std::max(job.ranks, 1);
}

double traffic_of(const Job& job, const JobPlan& plan) {
  return job.bytes_per_sample.value_or(0) * plan.estimate.remote_rate_per_core * worker_cores(job);
}

Traffic traffic_of(const ClusterSnapshot& after, const Plan& plan) {
  Traffic traffic;
  for (const JobPlan& job_plan : plan.jobs) {
    const Job& job = job_of(after, job_plan.id);
    for (const Worker& worker : job.workers) {
      traffic.sent[worker.node] += traffic_of(job, job_plan) * (1 - part_on(job, worker.node));
      for (const TrainerHost& host : job.hosts)
        if (host.node != worker.node)
          traffic.received[host.node] += traffic_of(job, job_plan) * part_on(job, host.node);
    }
  }
  return traffic;
}

TEST_CASE("a job that is told that a network is full could not have had one more worker on any node") {
  property("network binds", [](unsigned seed) {
    const Config config = some_config(seed);
    const std::optional<ClusterSnapshot> snapshot =
        settled(random_cluster(seed, {.gangs = true, .fixed_feeders = true, .networks = true}), config);
    RC_ASSERT(snapshot.has_value());
    const Plan plan = decide(*snapshot, config);
    const ClusterSnapshot after = applied(*snapshot, plan);
    Traffic traffic = traffic_of(after, plan);
    const auto carries = [](const Node& node, double bytes_per_second) {
      return bytes_per_second <= node.network_bytes_per_second.value_or(1e300);
    };
    for (const JobPlan& job_plan : plan.jobs) {
      if (job_plan.reason != Reason::kNetwork) continue;
      const Job& job = job_of(after, job_plan.id);
      const double more = traffic_of(job, job_plan);
      for (const Node& at : after.nodes) {
        bool fits = at.schedulable && room_on(at, after) >= job.worker_millicores &&
                    carries(at, traffic.sent[at.name] + more * (1 - part_on(job, at.name)));
        for (const TrainerHost& host : job.hosts)
          if (host.node != at.name)
            fits &= carries(node_of(after, host.node), traffic.received[host.node] + more * part_on(job, host.node));
        RC_ASSERT(!fits);
      }
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
