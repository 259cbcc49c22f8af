#include "scheduler/simulator/world/simulated_cluster.h"

#include <algorithm>

#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

struct ScriptedWorld {
  Cluster cluster = testing::small_cluster();
  Workload specs;
  std::vector<JobState> jobs;
  SimulatedCluster simulated;
  std::vector<int> active;

  explicit ScriptedWorld(Workload workload) : specs(std::move(workload)), jobs(specs.size()), simulated(cluster, jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].spec = &specs[i];
      jobs[i].index = static_cast<int>(i);
      jobs[i].knee_cores = specs[i].knee_cores_per_gpu * specs[i].gpus;
    }
  }
  void start(int job) {
    simulated.start_trainer(jobs[job], simulated.find_hosts(specs[job].gpus), 0);
    active.push_back(job);
  }
  scheduler::Plan plan() const {
    scheduler::Plan plan;
    for (const int index : active) {
      scheduler::JobPlan job;
      job.workers = jobs[index].allocated_workers;
      for (const HostState& host : jobs[index].hosts)
        job.local.push_back({simulated.nodes()[host.node].name, host.request_millicores, host.limit_millicores});
      plan.jobs.push_back(std::move(job));
    }
    return plan;
  }
};

TEST_CASE("A trainer starts with its share of the host's CPU") {
  ScriptedWorld world({testing::job(0, 2, 100, 5)});
  world.start(0);
  CHECK(world.jobs[0].hosts[0].request_millicores == 6000);
  CHECK(world.simulated.nodes()[world.jobs[0].hosts[0].node].free_gpus == 6);
}

TEST_CASE("Workers make room for a trainer that starts, the youngest first") {
  ScriptedWorld world({testing::job(0, 4, 100, 5), testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 12;
  plan.jobs[0].new_worker_nodes.assign(12, "gpu-0");
  CHECK(world.simulated.apply(plan, world.active, 10));
  CHECK(world.simulated.nodes()[0].free_millicores() == 0);
  world.start(1);
  CHECK(world.jobs[1].hosts[0].request_millicores == 12000);
  CHECK(world.jobs[0].workers.empty());
  CHECK(world.simulated.counts().workers_preempted == 12);
  CHECK(world.simulated.nodes()[0].free_millicores() == 0);
}

TEST_CASE("A neighbour gives back what it holds beyond its share, and no more") {
  ScriptedWorld world({testing::job(0, 4, 100, 5), testing::job(0, 2, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].local[0].request_millicores = plan.jobs[0].local[0].limit_millicores = 24000;
  world.simulated.apply(plan, world.active, 1);
  world.start(1);
  CHECK(world.jobs[0].hosts[0].request_millicores == 18000);
  CHECK(world.jobs[1].hosts[0].request_millicores == 6000);
}

TEST_CASE("A gang gives back CPU on the node where another trainer starts, and keeps it on its other nodes") {
  ScriptedWorld world({testing::job(0, 8, 100, 5), testing::job(0, 4, 100, 5)});
  world.simulated.start_trainer(world.jobs[0], {HostState{0, 4}, HostState{1, 4}}, 0);
  world.active.push_back(0);
  scheduler::Plan plan = world.plan();
  for (auto& local : plan.jobs[0].local) local.request_millicores = local.limit_millicores = 20000;
  world.simulated.apply(plan, world.active, 1);
  world.simulated.start_trainer(world.jobs[1], {HostState{1, 4}}, 2);
  CHECK(world.jobs[0].hosts[0].request_millicores == 20000);
  CHECK(world.jobs[0].hosts[1].request_millicores == 12000);
  CHECK(world.jobs[1].hosts[0].request_millicores == 12000);
}

TEST_CASE("What a plan asks for beyond a node's CPU is cut") {
  ScriptedWorld world({testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].local[0].request_millicores = 100000;
  plan.jobs[0].workers = 200;
  world.simulated.apply(plan, world.active, 1);
  CHECK(world.simulated.counts().requests_cut == 1);
  CHECK(world.jobs[0].hosts[0].request_millicores == 24000);
  for (const NodeState& node : world.simulated.nodes()) CHECK(node.free_millicores() == 0);
  const auto homeless = std::count_if(world.jobs[0].workers.begin(), world.jobs[0].workers.end(),
                                      [](const WorkerState& worker) { return worker.node < 0; });
  CHECK(homeless == 200 - 24 - 64);
}

TEST_CASE("A worker has started when it has a node, once, however long it was asked for in vain") {
  ScriptedWorld world({testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 150;  // there is room for 12 beside the trainer, for 24 and for 64
  for (int i = 1; i < 5; ++i) {
    world.simulated.apply(plan, world.active, i);
    CHECK(world.simulated.counts().workers_started == 12 + 24 + 64);
  }
  CHECK(world.jobs[0].workers_started == 12 + 24 + 64);
  plan.jobs[0].workers = 140;  // ten that never had a node are no longer asked for
  world.simulated.apply(plan, world.active, 6);
  plan.jobs[0].local[0].request_millicores = plan.jobs[0].local[0].limit_millicores = 2000;
  world.simulated.apply(plan, world.active, 7);  // room for ten of those that wait
  CHECK(world.jobs[0].workers_started == 12 + 24 + 64 + 10);
  CHECK(world.simulated.counts().workers_started == 12 + 24 + 64 + 10);
}

TEST_CASE("CPU that one job gives up is there for another in the same plan") {
  ScriptedWorld world({testing::job(0, 4, 100, 5), testing::job(0, 4, 100, 5)});
  world.start(0);
  world.start(1);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].local[0].request_millicores = plan.jobs[0].local[0].limit_millicores = 20000;
  plan.jobs[1].local[0].request_millicores = plan.jobs[1].local[0].limit_millicores = 4000;
  world.simulated.apply(plan, world.active, 1);
  CHECK(world.simulated.counts().requests_cut == 0);
  CHECK(world.jobs[0].hosts[0].request_millicores == 20000);
}

TEST_CASE("Victims go as named, the youngest where none is named") {
  ScriptedWorld world({testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 4;
  world.simulated.apply(plan, world.active, 1);
  const std::string first = world.jobs[0].workers[0].name;
  plan = world.plan();
  plan.jobs[0].workers = 2;
  plan.jobs[0].victims = {first};
  world.simulated.apply(plan, world.active, 2);
  REQUIRE(world.jobs[0].workers.size() == 2);
  CHECK(world.jobs[0].workers[0].name == "w0-1");
  CHECK(world.jobs[0].workers[1].name == "w0-2");
  CHECK(world.simulated.counts().workers_stopped == 2);
}

TEST_CASE("A draining worker holds its room until it is gone") {
  ScriptedWorld world({testing::job(0, 4, 100, 5)});
  world.cluster.physics.worker_drain_seconds = 30;
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 1;
  world.simulated.apply(plan, world.active, 1);
  plan.jobs[0].workers = 0;
  world.simulated.apply(plan, world.active, 2);
  CHECK(world.simulated.nodes()[2].worker_millicores == 1000);
  world.simulated.settle_workers(world.jobs[0], 32);
  CHECK(world.simulated.nodes()[2].worker_millicores == 0);
}

TEST_CASE("Applying the same plan again changes nothing") {
  ScriptedWorld world({testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 3;
  plan.jobs[0].local[0].limit_millicores = 20000;
  CHECK(world.simulated.apply(plan, world.active, 1));
  CHECK_FALSE(world.simulated.apply(plan, world.active, 2));
}

TEST_CASE("A worker that found no room takes the first that there is, without being asked for again") {
  ScriptedWorld world({testing::job(0, 4, 100, 5), testing::job(0, 8, 100, 5)});
  world.cluster.physics.worker_drain_seconds = 30;
  world.start(0);
  world.start(1);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 64;  // all of the node without GPUs
  plan.jobs[0].local[0].request_millicores = plan.jobs[0].local[0].limit_millicores = 24000;
  world.simulated.apply(plan, world.active, 1);
  plan.jobs[0].workers = 60;
  plan.jobs[1].workers = 2;
  world.simulated.apply(plan, world.active, 10);  // four drain until 40 s
  for (const WorkerState& worker : world.jobs[1].workers) CHECK(worker.node == -1);
  world.simulated.settle_workers(world.jobs[0], 40);
  world.simulated.apply(plan, world.active, 45);
  REQUIRE(world.jobs[1].workers.size() == 2);
  for (const WorkerState& worker : world.jobs[1].workers) {
    CHECK(worker.node == 2);
    CHECK(worker.ready_seconds == 45 + 20);
  }
  CHECK(world.simulated.counts().workers_started == 64 + 2);
}

TEST_CASE("Whatever plans ask for, no node is given more than it has") {
  std::uint64_t state = 3;
  const auto draw = [&state](int below) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(below));
  };
  for (const double drain : {0.0, 25.0}) {
    ScriptedWorld world({testing::job(0, 4, 100, 5), testing::job(0, 4, 100, 5), testing::job(0, 2, 100, 5),
                         testing::job(0, 6, 100, 5)});
    world.cluster.physics.worker_drain_seconds = drain;
    for (int i = 0; i < 4; ++i) world.start(i);
    for (int round = 0; round < 300; ++round) {
      const double now = 10.0 * round;
      scheduler::Plan plan = world.plan();
      for (scheduler::JobPlan& job : plan.jobs) {
        job.workers = draw(60);
        job.local[0].request_millicores = 500 * draw(60);
        job.local[0].limit_millicores = 500 * draw(60);
        for (int i = draw(10); i > 0; --i) job.new_worker_nodes.push_back(draw(2) == 0 ? "gpu-0" : "cpu-0");
        for (int i = draw(10); i > 0; --i)
          job.victims.push_back("w" + std::to_string(draw(4)) + "-" + std::to_string(draw(300)));
      }
      world.simulated.apply(plan, world.active, now);
      for (JobState& job : world.jobs) world.simulated.settle_workers(job, now);
      if (draw(20) == 0) world.simulated.lose_workers(draw(3));
      std::vector<std::int64_t> local(3, 0), workers(3, 0);
      for (const JobState& job : world.jobs) {
        for (const HostState& host : job.hosts) local[host.node] += host.request_millicores;
        for (const WorkerState& worker : job.workers)
          if (worker.node >= 0) workers[worker.node] += worker.millicores;
      }
      for (int node = 0; node < 3; ++node) {
        const NodeState& each = world.simulated.nodes()[node];
        REQUIRE(each.local_millicores == local[node]);  // the totals are those of the parts
        REQUIRE(each.worker_millicores == workers[node]);
        REQUIRE(each.free_millicores() >= 0);
      }
    }
  }
}

TEST_CASE("A trainer that leaves takes everything with it") {
  ScriptedWorld world({testing::job(0, 4, 100, 5), testing::job(0, 8, 100, 5)});
  world.start(0);
  world.start(1);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 20;
  plan.jobs[1].workers = 30;
  world.simulated.apply(plan, world.active, 1);
  world.simulated.remove_trainer(world.jobs[0], 2);
  world.simulated.remove_trainer(world.jobs[1], 2);
  for (const NodeState& node : world.simulated.nodes()) {
    CHECK(node.free_gpus == node.gpus);
    CHECK(node.free_millicores() == node.capacity_millicores);
    CHECK(node.trainers.empty());
  }
}

TEST_CASE("Workers of a trainer that has left hold their room until they are gone, but not against the next trainer") {
  ScriptedWorld world({testing::job(0, 8, 100, 5), testing::job(0, 8, 100, 5), testing::job(0, 8, 100, 5)});
  world.cluster.physics.worker_drain_seconds = 30;
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].local[0].request_millicores = plan.jobs[0].local[0].limit_millicores = 4000;
  plan.jobs[0].workers = 70;
  plan.jobs[0].new_worker_nodes.assign(70, "cpu-0");
  std::fill_n(plan.jobs[0].new_worker_nodes.begin(), 10, "gpu-0");
  world.simulated.apply(plan, world.active, 1);
  world.simulated.remove_trainer(world.jobs[0], 2);
  world.active.clear();
  CHECK(world.simulated.nodes()[0].free_gpus == 8);
  CHECK(world.simulated.nodes()[0].worker_millicores == 10000);
  CHECK(world.simulated.nodes()[2].worker_millicores == 60000);
  CHECK(world.simulated.counts().workers_stopped == 70);
  // A trainer that comes takes its share from them, as from any other worker.
  world.start(1);
  CHECK(world.jobs[1].hosts[0].node == 0);
  CHECK(world.jobs[1].hosts[0].request_millicores == 24000);
  CHECK(world.simulated.nodes()[0].worker_millicores == 0);
  CHECK(world.simulated.counts().workers_preempted == 10);
  plan = world.plan();
  plan.jobs[0].workers = 64;
  world.simulated.apply(plan, world.active, 3);  // four find room on the node, and 24 beside it
  CHECK(world.jobs[1].workers_started == 4 + 24);
  world.simulated.settle_workers(world.jobs[0], 32);
  CHECK(world.jobs[0].workers.empty());
  CHECK(world.simulated.nodes()[2].worker_millicores == 4000);
  world.simulated.apply(plan, world.active, 33);
  CHECK(world.jobs[1].workers_started == 64);
}

TEST_CASE("A feeder with fixed CPU keeps it, whatever a plan says") {
  ScriptedWorld world({testing::job(0, 4, 100, 5)});
  world.specs[0].local_cores = 3;
  world.start(0);
  CHECK(world.jobs[0].hosts[0].request_millicores == 3000);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].local[0].request_millicores = 12000;
  world.simulated.apply(plan, world.active, 1);
  CHECK(world.jobs[0].hosts[0].request_millicores == 3000);
  plan.jobs[0].local[0].request_millicores = 0;
  world.simulated.apply(plan, world.active, 2);
  CHECK(world.jobs[0].hosts[0].request_millicores == 3000);
}

TEST_CASE("A plan that says nothing of a host's CPU leaves it, and one that wants fewer workers than none wants none") {
  ScriptedWorld world({testing::job(0, 4, 100, 5)});
  world.start(0);
  scheduler::Plan plan = world.plan();
  plan.jobs[0].local.clear();
  plan.jobs[0].workers = 2;
  CHECK(world.simulated.apply(plan, world.active, 1));
  CHECK(world.jobs[0].hosts[0].request_millicores == 12000);
  CHECK(world.jobs[0].workers.size() == 2);
  plan.jobs[0].workers = -3;
  CHECK(world.simulated.apply(plan, world.active, 2));
  CHECK(world.jobs[0].workers.empty());
}

TEST_CASE("A gang larger than any node takes nodes without trainers, of whatever size, and else none") {
  ScriptedWorld world({testing::job(0, 12, 100, 5), testing::job(0, 2, 100, 5)});
  world.cluster.groups = {{"small", 3, 4, 24, 0, false}, {"big", 1, 8, 24, 0, false}};
  std::vector<JobState> jobs(2);
  SimulatedCluster simulated(world.cluster, jobs);
  const auto gpus_by_node = [&](int gpus) {
    std::vector<std::pair<int, int>> found;
    for (const HostState& host : simulated.find_hosts(gpus)) found.emplace_back(host.node, host.gpus);
    return found;
  };
  using Hosts = std::vector<std::pair<int, int>>;
  CHECK(gpus_by_node(3) == Hosts{{0, 3}});  // the node with the fewest free GPUs
  CHECK(gpus_by_node(6) == Hosts{{3, 6}});  // not across small nodes: one has room
  CHECK(gpus_by_node(12) == Hosts{{0, 4}, {1, 4}, {2, 4}});
  CHECK(gpus_by_node(15) == Hosts{{0, 4}, {1, 4}, {2, 4}, {3, 3}});
  CHECK(gpus_by_node(21).empty());
  simulated.nodes()[1].free_gpus = 3;
  CHECK(gpus_by_node(12) == Hosts{{0, 4}, {2, 4}, {3, 4}});
  CHECK(gpus_by_node(17).empty());
  simulated.nodes()[3].up = false;
  CHECK(gpus_by_node(6).empty());  // it waits for the node that can hold it
}

TEST_CASE("Neither trainers nor workers start on a node that is down or cordoned") {
  ScriptedWorld world({testing::job(0, 4, 100, 5)});
  world.simulated.nodes()[0].up = false;
  CHECK(world.simulated.find_hosts(4)[0].node == 1);
  world.simulated.nodes()[1].cordoned = true;
  CHECK(world.simulated.find_hosts(4).empty());
  CHECK(world.simulated.find_hosts(16).empty());
  world.simulated.nodes()[1].cordoned = false;
  world.start(0);
  world.simulated.nodes()[2].cordoned = true;
  scheduler::Plan plan = world.plan();
  plan.jobs[0].workers = 3;
  plan.jobs[0].new_worker_nodes = {"gpu-0", "cpu-0"};
  world.simulated.apply(plan, world.active, 1);
  for (const WorkerState& worker : world.jobs[0].workers) CHECK(worker.node == 1);
}

}  // namespace
}  // namespace sluice::simulator
