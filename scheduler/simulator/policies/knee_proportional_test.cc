#include "scheduler/simulator/policies/knee_proportional.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("knee-proportional: plenty of CPU, every job runs at full speed") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 300);
  world.job("a", "gpu", 4, kneed(4, 20)).job("b", "gpu", 2, kneed(2, 8)).job("c", "gpu", 2, kneed(2, 0.5));
  KneeProportionalPolicy policy{{}};
  world.run(policy, 20);
  for (const char* name : {"a", "b", "c"}) {
    INFO(name);
    CHECK(world.speed(name) > 0.9);
  }
  CHECK(world.workers("c") == 0);
}

TEST_CASE("knee-proportional: scarce CPU, all are cut by one factor") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 40);
  world.job("a", "gpu", 4, kneed(4, 20)).job("b", "gpu", 4, kneed(4, 10));
  KneeProportionalPolicy policy{{}};
  world.run(policy, 40);
  CHECK(world.workers("a") + world.workers("b") >= 38);
  CHECK(world.workers("a") + world.workers("b") <= 40);
  CHECK(world.speed("a") == Approx(world.speed("b")).epsilon(0.1));
  CHECK(world.speed("a") == Approx((24 + 0.77 * 40) / 120).epsilon(0.1));
}

TEST_CASE("knee-proportional: CPU that one trainer leaves on a host goes to the other before any worker") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 300);
  world.job("hungry", "gpu", 4, kneed(4, 5)).job("language", "gpu", 4, kneed(4, 0.5));
  KneeProportionalPolicy policy{{}};
  world.run(policy, 20);
  CHECK(world.local_cores("hungry") > 20);
  CHECK(world.workers("hungry") <= 6);
  CHECK(world.speed("hungry") > 0.9);
}

TEST_CASE("knee-proportional: a job without metrics keeps its share and its workers") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 300).job("a", "gpu", 4, kneed(4, 20));
  KneeProportionalPolicy policy{{}};
  const Plan plan = policy.decide(world.snapshot());
  CHECK(plan.jobs[0].local == std::vector<LocalCpu>{{"gpu", 12000, 12000}});
  CHECK(plan.jobs[0].workers == 0);
}

// A job whose metrics say how many cores it needs: all at work are its own.
Job needing(const std::string& name, const std::string& host, double knee_cores) {
  Job job{.id = {"default", name}, .running = true};
  job.gpus = job.ranks = 4;
  job.max_workers = 1000;
  job.hosts = {{.node = host, .ranks = 4, .gpus = 4, .request_millicores = 1000, .limit_millicores = 1000}};
  job.local_adjustable = true;
  job.observation = {measured_need(knee_cores), ""};
  return job;
}

struct Given {
  std::int64_t local_millicores = 0;
  int workers = 0;

  friend bool operator==(const Given&, const Given&) = default;
};

std::ostream& operator<<(std::ostream& out, const Given& given) {
  return out << given.local_millicores << "m and " << given.workers << " workers";
}

std::vector<Given> given(std::vector<Node> nodes, std::vector<Job> jobs) {
  KneeProportionalPolicy policy{{}};
  std::vector<Given> given;
  const ClusterSnapshot snapshot{.taken_at_seconds = 1000, .nodes = std::move(nodes), .jobs = std::move(jobs)};
  for (const JobPlan& plan : policy.decide(snapshot).jobs)
    given.push_back({plan.local.at(0).request_millicores, plan.workers});
  return given;
}

TEST_CASE("knee-proportional: what one measurement gives, by hand") {
  // 24 cores and 8 GPUs: three per GPU. Headroom 1.2; a remote core is worth 0.77 local ones until it is measured.
  const Node gpu{.name = "g", .allocatable_millicores = 24'000, .gpus = 8};
  const auto cpu = [](int cores) { return Node{.name = "c", .allocatable_millicores = std::int64_t{1000} * cores}; };
  Node cordoned = cpu(100);
  cordoned.schedulable = false;
  Job blind = needing("b", "g", 4);
  blind.observation = {std::nullopt, "away"};
  Job blind_with_workers = blind;
  blind_with_workers.allocated_workers = 2;
  blind_with_workers.workers = {{.name = "w0", .node = "c", .ready = true}, {.name = "w1", .node = "c", .ready = true}};
  struct Row {
    const char* situation;
    std::vector<Node> nodes;
    std::vector<Job> jobs;
    std::vector<Given> want;
  };
  const Row rows[] = {
      {"five cores: six of its own", {gpu, cpu(100)}, {needing("a", "g", 5)}, {{6000, 0}}},
      {"fifteen: eighteen of its own, beyond its share of twelve",
       {gpu, cpu(100)},
       {needing("a", "g", 15)},
       {{18000, 0}}},
      // 48 cores are needed: 24 on the host, 24 / 0.77 = 31.2 elsewhere.
      {"forty: the host and 32 workers", {gpu, cpu(100)}, {needing("a", "g", 40)}, {{24000, 32}}},
      // Factor f: 48 f - 24 cores, over 0.77, is at most 10 workers: f = 0.66.
      {"forty, and ten cores beside the host", {gpu, cpu(10)}, {needing("a", "g", 40)}, {{24000, 10}}},
      {"cores on a node that takes no workers are none", {gpu, cordoned}, {needing("a", "g", 40)}, {{24000, 0}}},
      // Both lack 12 cores on the host, 24 and 48 in all.
      {"two that need more than the host: halves of it, the rest by one factor",
       {gpu, cpu(200)},
       {needing("a", "g", 20), needing("b", "g", 40)},
       {{12000, 16}, {12000, 47}}},
      {"a neighbour without metrics keeps its share, and has no workers yet",
       {gpu, cpu(100)},
       {needing("a", "g", 15), blind},
       {{12000, 8}, {12000, 0}}},
      {"or those that it has", {gpu, cpu(100)}, {blind_with_workers}, {{12000, 2}}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(given(row.nodes, row.jobs) == row.want);
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
