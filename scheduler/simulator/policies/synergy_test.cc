#include "scheduler/simulator/policies/synergy.h"

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("Synergy: the share until the profile is known, then the host's CPU by need") {
  World world;
  world.node("gpu", 8, 24).node("cpu", 0, 200);
  world.job("hungry", "gpu", 4, kneed(4, 20)).job("language", "gpu", 4, kneed(4, 0.5));
  SynergyPolicy policy{{}};
  world.run(policy, 1);
  CHECK(world.local_cores("hungry") == 12);
  CHECK(world.local_cores("language") == 12);
  world.run(policy, 10);
  // The language model needs 2 cores; with headroom, in whole cores, 3.
  CHECK(world.local_cores("language") == Approx(3).margin(1));
  CHECK(world.local_cores("hungry") + world.local_cores("language") == 24);
  CHECK(world.speed("language") > 0.95);
  CHECK(world.workers("hungry") == 0);
}

TEST_CASE("Synergy: two jobs that both need more have their shares") {
  World world;
  world.node("gpu", 8, 24).job("a", "gpu", 4, kneed(4, 20)).job("b", "gpu", 4, kneed(4, 10));
  SynergyPolicy policy{{}};
  world.run(policy, 10);
  CHECK(world.local_cores("a") == 12);
  CHECK(world.local_cores("b") == 12);
}

TEST_CASE("Synergy: CPU does not move between hosts") {
  World world;
  world.node("gpu-0", 8, 24).node("gpu-1", 8, 24);
  world.job("hungry", "gpu-0", 8, kneed(8, 20)).job("language", "gpu-1", 8, kneed(8, 0.5));
  SynergyPolicy policy{{}};
  world.run(policy, 10);
  CHECK(world.local_cores("hungry") == 24);
  CHECK(world.workers("hungry") == 0);
}

// A job as its metrics show it: so many local cores at work, a tenth of the time waiting.
Job measured(const std::string& name, std::vector<TrainerHost> hosts, double knee_cores) {
  Job job{.id = {"default", name}, .running = true};
  for (const TrainerHost& host : hosts) job.gpus += host.gpus;
  job.ranks = job.gpus;
  job.hosts = std::move(hosts);
  job.local_adjustable = true;
  job.observation = {measured_need(knee_cores), ""};
  return job;
}

std::vector<std::int64_t> cores_of(std::vector<Node> nodes, std::vector<Job> jobs) {
  SynergyPolicy policy{{}};
  std::vector<std::int64_t> cores;
  const ClusterSnapshot snapshot{.taken_at_seconds = 1000, .nodes = std::move(nodes), .jobs = std::move(jobs)};
  for (const JobPlan& plan : policy.decide(snapshot).jobs)
    for (const LocalCpu& local : plan.local) {
      CHECK(local.request_millicores == local.limit_millicores);
      cores.push_back(local.request_millicores / 1000);
    }
  return cores;
}

TEST_CASE("Synergy: how many whole cores each job has, from one measurement") {
  const Node gpu{.name = "g", .allocatable_millicores = 24'000, .gpus = 8};
  const Node other{.name = "h", .allocatable_millicores = 48'000, .gpus = 8};
  Node taken = gpu;
  taken.requested_by_others_millicores = 8000;
  const auto on = [](const std::string& node, int gpus) {
    return TrainerHost{.node = node, .ranks = gpus, .gpus = gpus, .request_millicores = 1000, .limit_millicores = 1000};
  };
  Job blind = measured("b", {on("g", 4)}, 2);
  blind.observation = {std::nullopt, "away"};
  Job suspended = measured("b", {on("g", 4)}, 2);
  suspended.running = false;
  struct Row {
    const char* situation;
    std::vector<Node> nodes;
    std::vector<Job> jobs;
    std::vector<std::int64_t> want;
  };
  const Row rows[] = {
      {"five cores and a fifth, in whole ones", {gpu}, {measured("a", {on("g", 4)}, 5)}, {6}},
      {"five and a half and a fifth: seven", {gpu}, {measured("a", {on("g", 4)}, 5.5)}, {7}},
      {"needs more than its share, and the host has it", {gpu}, {measured("a", {on("g", 4)}, 15)}, {18}},
      {"needs more than the host", {gpu}, {measured("a", {on("g", 4)}, 50)}, {24}},
      {"of what other pods leave", {taken}, {measured("a", {on("g", 4)}, 50)}, {16}},
      {"beside one without metrics, which has its share", {gpu}, {measured("a", {on("g", 4)}, 50), blind}, {12, 12}},
      {"beside one that is suspended", {gpu}, {measured("a", {on("g", 4)}, 50), suspended}, {24}},
      // Ten cores are 12 with headroom: a third on "g", two thirds on "h".
      {"a gang, by its GPUs on each host", {gpu, other}, {measured("a", {on("g", 2), on("h", 4)}, 10)}, {4, 8}},
      {"a gang that finds half of one host taken",
       {gpu, other},
       {measured("a", {on("g", 4), on("h", 4)}, 40), measured("b", {on("g", 4)}, 40)},
       {12, 24, 12}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(cores_of(row.nodes, row.jobs) == row.want);
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
