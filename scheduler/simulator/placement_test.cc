#include "scheduler/simulator/placement.h"

#include <algorithm>

#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

struct World {
  Cluster cluster = testing::small_cluster();
  Workload specs;
  std::vector<JobState> jobs;
  Floor floor;
  std::vector<int> active;

  explicit World(Workload workload) : specs(std::move(workload)), jobs(specs.size()), floor(cluster, jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].spec = &specs[i];
      jobs[i].index = static_cast<int>(i);
      jobs[i].knee_cores = specs[i].knee_cores_per_gpu * specs[i].gpus;
    }
  }
  void start(int job) {
    floor.start_trainer(jobs[job], floor.find_hosts(specs[job].gpus), 0);
    active.push_back(job);
  }
  scheduler::Plan plan() const {
    scheduler::Plan plan;
    for (const int index : active) {
      scheduler::JobPlan job;
      job.workers = jobs[index].allocated_workers;
      for (const HostState& host : jobs[index].hosts)
        job.local.push_back({floor.nodes()[host.node].name, host.request_millicores, host.limit_millicores});
      plan.jobs.push_back(std::move(job));
    }
    return plan;
  }
};

TEST_CASE("A trainer starts with its share of the host's CPU") {
  World world({testing::job(0, 2, 100, 5)});
  world.start(0);
  CHECK(world.jobs[0].hosts[0].request_millicores == 6000);
  CHECK(world.floor.nodes()[world.jobs[0].hosts[0].node].free_gpus == 6);
}

TEST_CASE("Workers make room for a trainer that starts, the youngest first") {
  World world({testing::job(0, 4, 100, 5), testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 12;
  plan.jobs[0].new_worker_nodes.assign(12, "gpu-0");
  CHECK(world.floor.apply(plan, world.active, 10));
  CHECK(world.floor.nodes()[0].free_millicores() == 0);
  world.start(1);
  CHECK(world.jobs[1].hosts[0].request_millicores == 12000);
  CHECK(world.jobs[0].workers.empty());
  CHECK(world.floor.counts().workers_preempted == 12);
  CHECK(world.floor.nodes()[0].free_millicores() == 0);
}

TEST_CASE("A neighbour gives back what it holds beyond its share, and no more") {
  World world({testing::job(0, 4, 100, 5), testing::job(0, 2, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].local[0].request_millicores = plan.jobs[0].local[0].limit_millicores = 24000;
  world.floor.apply(plan, world.active, 1);
  world.start(1);
  CHECK(world.jobs[0].hosts[0].request_millicores == 18000);
  CHECK(world.jobs[1].hosts[0].request_millicores == 6000);
}

TEST_CASE("What a plan asks for beyond a node's CPU is cut") {
  World world({testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].local[0].request_millicores = 100000;
  plan.jobs[0].workers = 200;
  world.floor.apply(plan, world.active, 1);
  CHECK(world.floor.counts().requests_cut == 1);
  CHECK(world.jobs[0].hosts[0].request_millicores == 24000);
  for (const NodeState& node : world.floor.nodes()) CHECK(node.free_millicores() == 0);
  const auto homeless = std::count_if(world.jobs[0].workers.begin(), world.jobs[0].workers.end(),
                                      [](const WorkerState& worker) { return worker.node < 0; });
  CHECK(homeless == 200 - 24 - 64);
}

TEST_CASE("CPU that one job gives up is there for another in the same plan") {
  World world({testing::job(0, 4, 100, 5), testing::job(0, 4, 100, 5)});
  world.start(0);
  world.start(1);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].local[0].request_millicores = plan.jobs[0].local[0].limit_millicores = 20000;
  plan.jobs[1].local[0].request_millicores = plan.jobs[1].local[0].limit_millicores = 4000;
  world.floor.apply(plan, world.active, 1);
  CHECK(world.floor.counts().requests_cut == 0);
  CHECK(world.jobs[0].hosts[0].request_millicores == 20000);
}

TEST_CASE("Victims go as named, the youngest where none is named") {
  World world({testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 4;
  world.floor.apply(plan, world.active, 1);
  const std::string first = world.jobs[0].workers[0].name;
  plan = world.plan();
  plan.jobs[0].workers = 2;
  plan.jobs[0].victims = {first};
  world.floor.apply(plan, world.active, 2);
  REQUIRE(world.jobs[0].workers.size() == 2);
  CHECK(world.jobs[0].workers[0].name == "w0-1");
  CHECK(world.jobs[0].workers[1].name == "w0-2");
  CHECK(world.floor.counts().workers_stopped == 2);
}

TEST_CASE("A draining worker holds its room until it is gone") {
  World world({testing::job(0, 4, 100, 5)});
  world.cluster.physics.worker_drain_seconds = 30;
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 1;
  world.floor.apply(plan, world.active, 1);
  plan.jobs[0].workers = 0;
  world.floor.apply(plan, world.active, 2);
  CHECK(world.floor.nodes()[2].worker_millicores == 1000);
  world.floor.settle_workers(world.jobs[0], 32);
  CHECK(world.floor.nodes()[2].worker_millicores == 0);
}

TEST_CASE("Applying the same plan again changes nothing") {
  World world({testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 3;
  plan.jobs[0].local[0].limit_millicores = 20000;
  CHECK(world.floor.apply(plan, world.active, 1));
  CHECK_FALSE(world.floor.apply(plan, world.active, 2));
}

TEST_CASE("A plan's own choice of hosts is taken when it has room") {
  World world({testing::job(0, 4, 100, 5)});
  CHECK(world.floor.hosts_on({"gpu-1"}, 4).size() == 1);
  CHECK(world.floor.hosts_on({"gpu-1", "gpu-1"}, 4).size() == 1);
  CHECK(world.floor.hosts_on({"gpu-0", "gpu-1"}, 16).size() == 2);
  CHECK(world.floor.hosts_on({"gpu-1"}, 9).empty());
  CHECK(world.floor.hosts_on({"nowhere"}, 1).empty());
}

}  // namespace
}  // namespace sluice::simulator
