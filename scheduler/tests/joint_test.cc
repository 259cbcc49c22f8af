// Feeders and workers decided together, by situation.
#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

Node gpu_host(const std::string& name, std::int64_t millicores = 24'000) {
  return {.name = name, .allocatable_millicores = millicores, .gpus = 8};
}
Node cpu_node(const std::string& name, std::int64_t millicores) {
  return {.name = name, .allocatable_millicores = millicores};
}

// A job on a host, with its GPU-proportional share of 3 cores per GPU there now, that needs `knee` cores in all.
Job on_host(const std::string& name, const std::string& host, int gpus, double knee) {
  Job job = MakeJob(name).gpus(gpus).obj();
  job.ranks = gpus;
  job.local_adjustable = true;
  const double local = 3.0 * gpus;
  job.hosts = {{host, gpus, gpus, static_cast<std::int64_t>(1000 * local), 24'000}};
  const FluidJob physics{.demand = 1000 * knee, .local_rate = 1000, .remote_rate = 770, .local_cores = local};
  job.observation = {physics.steady(0, kNowSeconds - 5), ""};
  return job;
}

ClusterSnapshot cluster(std::vector<Node> nodes, std::vector<Job> jobs) {
  return {kNowSeconds, std::move(nodes), std::move(jobs), {}, {}};
}

std::int64_t local(const Plan& plan, const std::string& name) {
  return plan_of(plan, name).local[0].request_millicores;
}

TEST_CASE("a language model gives what it does not need to its neighbour on the host") {
  const Plan plan =
      decide(cluster({gpu_host("h")}, {on_host("language", "h", 4, 2), on_host("vision", "h", 4, 30)}), {});
  CHECK(local(plan, "language") == 4000);  // a core per GPU is more than its need
  CHECK(local(plan, "vision") == 20'000);
  CHECK(plan_of(plan, "vision").workers == 0);
  CHECK(plan_of(plan, "vision").reason == Reason::kCpu);
}

TEST_CASE("a feeder may use idle CPU of its host beyond what is guaranteed to it") {
  const Plan plan = decide(cluster({gpu_host("h")}, {on_host("language", "h", 8, 4)}), {});
  CHECK(plan_of(plan, "language").local[0].limit_millicores == 24'000);
}

TEST_CASE("nothing is known yet: the GPU-proportional share") {
  Job fresh = on_host("fresh", "h", 2, 10);
  fresh.observation = {std::nullopt, "no metrics yet"};
  fresh.hosts[0].request_millicores = 0;
  const Plan plan = decide(cluster({gpu_host("h"), cpu_node("n", 64'000)}, {fresh}), {});
  CHECK(local(plan, "fresh") == 6000);
  CHECK(plan_of(plan, "fresh").workers == 0);
}

TEST_CASE("what the own host cannot give comes from workers, as many as the curve is steep for") {
  const Plan plan = decide(
      cluster({gpu_host("h"), cpu_node("n", 96'000)}, {on_host("vision", "h", 4, 30), on_host("other", "h", 4, 30)}),
      {});
  for (const char* name : {"vision", "other"}) {
    CHECK(local(plan, name) == 12'000);
    CHECK(plan_of(plan, name).workers == Approx((1.355 * 30 - 12) / 0.77).margin(2));
    CHECK(plan_of(plan, name).new_worker_nodes.front() == "n");
    CHECK(plan_of(plan, name).planned_supply_ratio == Approx(1.355).margin(0.04));
  }
}

// A starved job whose feeder began with 0.3 cores, where 0.91 would do.
Job just_started() {
  Job job = MakeJob("vision").worker_millicores(200).obj();
  job.local_adjustable = true;
  job.hosts = {{"h", 1, 0, 300, 2000}};
  const FluidJob physics{.demand = 910, .local_rate = 1000, .remote_rate = 770, .local_cores = 0.3};
  job.observation = {physics.steady(0, kNowSeconds), ""};
  return job;
}

// So many seconds after the plan was carried out; the job is measured as before.
ClusterSnapshot applied_for(double seconds, const ClusterSnapshot& before, const Plan& plan) {
  ClusterSnapshot snapshot = applied(before, plan);
  snapshot.taken_at_seconds += seconds;
  for (Job& job : snapshot.jobs) job.observation.measurement->window_end_seconds += seconds;
  return snapshot;
}

TEST_CASE("no worker starts while a feeder grows, and one that could not use more gets them after a window") {
  ClusterSnapshot snapshot = cluster({cpu_node("h", 2000), cpu_node("n", 2000)}, {just_started()});
  const Plan grows = decide(snapshot, {});
  const std::int64_t grown = local(grows, "vision");
  CHECK(grown == Approx(1.355 * 910).margin(10));
  CHECK(plan_of(grows, "vision").workers == 0);

  // The feeder has the CPU, and the window still shows it with what it had.
  snapshot = applied_for(3, snapshot, grows);
  const Plan waits = decide(snapshot, {});
  CHECK(local(waits, "vision") == grown);
  CHECK(plan_of(waits, "vision").workers == 0);
  CHECK(plan_of(waits, "vision").estimate.knee_cores == plan_of(grows, "vision").estimate.knee_cores);

  // A whole window with it: the feeder uses no more than before, and the trainer waits as long.
  snapshot = applied_for(15, snapshot, waits);
  CHECK(decide(snapshot, {}).jobs[0].workers > 0);
}

TEST_CASE("where the host has no room for the feeder to grow, workers start at once") {
  ClusterSnapshot snapshot = cluster({cpu_node("h", 2000), cpu_node("n", 2000)}, {just_started()});
  snapshot.nodes[0].requested_by_others_millicores = 1600;
  const Plan plan = decide(snapshot, {});
  CHECK(local(plan, "vision") == 400);
  CHECK(plan_of(plan, "vision").workers == Approx((1.355 * 0.91 - 0.4) / 0.77 / 0.2).margin(1));
}

TEST_CASE("workers go to nodes without GPUs first, then to hosts with CPU to spare") {
  const Plan plan = decide(cluster({gpu_host("a"), gpu_host("h"), cpu_node("n", 3000)},
                                   {on_host("language", "a", 8, 4), on_host("vision", "h", 8, 30)}),
                           {});
  const auto& nodes = plan_of(plan, "vision").new_worker_nodes;
  REQUIRE(nodes.size() > 4);
  CHECK(std::count(nodes.begin(), nodes.end(), "n") == 3);
  CHECK(std::count(nodes.begin(), nodes.end(), "a") == std::ssize(nodes) - 3);
  CHECK(nodes[0] == "n");
}

TEST_CASE("workers on a host make way for the floor of a job that starts there, and have successors elsewhere") {
  Job vision = on_host("vision", "h", 8, 30);
  for (int i = 0; i < 12; ++i)
    vision.workers.push_back({"w" + std::to_string(10 + i), "a", true, kNowSeconds - 900, kNowSeconds - 800, false});
  vision.allocated_workers = 12;
  vision.observation.measurement =
      FluidJob{.demand = 30'000, .local_rate = 1000, .remote_rate = 770, .local_cores = 24}.steady(12, kNowSeconds - 5);
  Job fresh = on_host("fresh", "a", 8, 10);
  fresh.observation = {std::nullopt, "no metrics yet"};
  ClusterSnapshot snapshot = cluster({gpu_host("a"), gpu_host("h"), cpu_node("n", 20'000)}, {vision, fresh});

  // A number of replicas cannot say "this one, but elsewhere": the workers are missing for one decision.
  const Plan shrunk = decide(snapshot, {});
  CHECK(local(shrunk, "fresh") == 24'000);
  CHECK(plan_of(shrunk, "vision").victims.size() == 12);
  CHECK(plan_of(shrunk, "vision").workers == 0);
  CHECK(plan_of(shrunk, "vision").new_worker_nodes.empty());
  CHECK(decide(applied(snapshot, shrunk), {}).jobs[1].workers >= 12);
}

TEST_CASE("a job on two hosts gets each host's part of its need there") {
  Job job = on_host("wide", "h1", 16, 40);
  job.hosts = {{"h1", 8, 8, 24'000, 24'000}, {"h2", 8, 8, 24'000, 24'000}};
  job.observation.measurement =
      FluidJob{.demand = 40'000, .local_rate = 1000, .remote_rate = 770, .local_cores = 48}.steady(0, kNowSeconds - 5);
  const Plan plan = decide(cluster({gpu_host("h1"), gpu_host("h2")}, {job}), {});
  CHECK(plan_of(plan, "wide").local[0].request_millicores == Approx(21'000).margin(3001));
  CHECK(plan_of(plan, "wide").local[0].request_millicores == plan_of(plan, "wide").local[1].request_millicores);
}

TEST_CASE("the network of a host bounds what workers may send there") {
  Job vision = on_host("vision", "h", 8, 60);
  vision.bytes_per_sample = 150'000;  // 770 samples/s from a worker: 115.5 MB/s
  ClusterSnapshot snapshot = cluster({gpu_host("h"), cpu_node("n", 64'000)}, {vision});
  snapshot.nodes[0].network_bytes_per_second = 1.2e9;
  const Plan plan = decide(snapshot, {});
  CHECK(plan_of(plan, "vision").workers == 10);
  CHECK(plan_of(plan, "vision").reason == Reason::kNetwork);
  snapshot.nodes[0].network_bytes_per_second.reset();
  snapshot.nodes[1].network_bytes_per_second = 0.6e9;  // out of the node that has room
  CHECK(decide(snapshot, {}).jobs[0].workers == 5);
  CHECK(decide(snapshot, {}).jobs[0].reason == Reason::kNetwork);
}

TEST_CASE("memory of a node bounds its workers") {
  Job vision = on_host("vision", "h", 8, 60);
  vision.worker_memory_bytes = 1 << 30;
  ClusterSnapshot snapshot = cluster({gpu_host("h"), cpu_node("n", 64'000)}, {vision});
  snapshot.nodes[1].free_memory_bytes = std::int64_t{3} << 30;
  CHECK(decide(snapshot, {}).jobs[0].workers == 3);
}

TEST_CASE("a quota bounds the workers of all jobs that name it") {
  ClusterSnapshot snapshot =
      cluster({gpu_host("h"), cpu_node("n", 64'000)}, {on_host("a", "h", 4, 30), on_host("b", "h", 4, 30)});
  snapshot.quotas = {{"team", 10'000}};
  for (Job& job : snapshot.jobs) job.quota = "team";
  const Plan plan = decide(snapshot, {});
  CHECK(plan.jobs[0].workers + plan.jobs[1].workers == 10);
  CHECK(std::abs(plan.jobs[0].workers - plan.jobs[1].workers) <= 1);
  CHECK(plan.jobs[0].reason == Reason::kQuota);
  CHECK_THAT(plan.jobs[0].explanation, Catch::StartsWith("Quota team limits it to 5 workers"));
}

TEST_CASE("a budget bounds what all workers cost") {
  ClusterSnapshot snapshot = cluster({gpu_host("h"), cpu_node("n", 64'000)}, {on_host("a", "h", 8, 60)});
  for (Node& node : snapshot.nodes)
    node.price_per_hour = static_cast<double>(node.allocatable_millicores) / 1000 * 0.05;
  snapshot.budget_per_hour = 0.5;
  const Plan plan = decide(snapshot, {});
  CHECK(plan.jobs[0].workers == 10);
  CHECK(plan.jobs[0].reason == Reason::kBudget);
}

TEST_CASE("cheap nodes before dear ones, and the dear ones are left first") {
  ClusterSnapshot snapshot =
      cluster({gpu_host("h"), cpu_node("dear", 10'000), cpu_node("fair", 10'000)}, {on_host("a", "h", 8, 30)});
  snapshot.nodes[1].price_per_hour = 2;
  snapshot.nodes[2].price_per_hour = 1;
  const Plan plan = decide(snapshot, {});
  CHECK(plan.jobs[0].new_worker_nodes[0] == "fair");

  Job shrinking = MakeJob("s").holds(2, "dear").holds(1, "fair").not_running().obj();
  snapshot.jobs = {shrinking};
  CHECK(decide(snapshot, {}).jobs[0].victims.back() == "s-worker-2");
}

TEST_CASE("spot nodes are left before others") {
  ClusterSnapshot snapshot = cluster({cpu_node("spot", 4000), cpu_node("usual", 4000)},
                                     {MakeJob("s").holds(1, "spot").holds(1, "usual").not_running().obj()});
  snapshot.nodes[0].spot = true;
  CHECK(decide(snapshot, {}).jobs[0].victims.front() == "s-worker-0");
}

TEST_CASE("a node is drained: its workers stay until they are evicted, and no job is below its floor") {
  Job vision = on_host("vision", "h", 8, 30);
  for (int i = 0; i < 4; ++i)
    vision.workers.push_back({"w" + std::to_string(i), "n", true, kNowSeconds - 900, kNowSeconds - 800, false});
  vision.allocated_workers = 4;
  ClusterSnapshot snapshot = cluster({gpu_host("h"), cpu_node("m", 4000), cpu_node("n", 8000)}, {vision});
  snapshot.nodes[2].schedulable = false;
  const Plan draining = decide(snapshot, {});
  CHECK(plan_of(draining, "vision").workers == 8);
  for (const std::string& node : plan_of(draining, "vision").new_worker_nodes) CHECK(node == "m");
  snapshot.jobs[0].workers.clear();
  const Plan drained = decide(snapshot, {});
  CHECK(plan_of(drained, "vision").workers == 4);
  CHECK(local(drained, "vision") == 24'000);
}

TEST_CASE("objectives: which job gets the scarce cores") {
  // "small" has one GPU, "large" seven; both need six cores per GPU; "large" will end soon.
  Job small = on_host("small", "h", 1, 6), large = on_host("large", "h", 7, 42);
  remains(36'000, small);
  remains(3600, large);
  const ClusterSnapshot snapshot = cluster({gpu_host("h"), cpu_node("n", 6000)}, {large, small});
  struct Row {
    Objective objective;
    int large, small;
  };
  // Per core the small job moves seven times as far; the objectives weigh that against size and time left.
  const Row rows[] = {{Objective::kBalanced, 4, 2},
                      {Objective::kThroughput, 4, 2},
                      {Objective::kCompletionTime, 6, 0},
                      {Objective::kFair, 2, 4}};
  for (const Row& row : rows) {
    CAPTURE(to_string(row.objective));
    Config config;
    config.objective = row.objective;
    const Plan plan = decide(snapshot, config);
    CHECK(plan_of(plan, "large").workers + plan_of(plan, "small").workers == 6);
    CHECK((plan_of(plan, "large").workers > plan_of(plan, "small").workers) == (row.large > row.small));
  }
}

TEST_CASE("objective cost: no worker that is worth less than its price") {
  const ClusterSnapshot snapshot =
      cluster({gpu_host("h"), cpu_node("n", 64'000)}, {on_host("small", "h", 1, 12), on_host("large", "h", 7, 42)});
  Config config;
  config.objective = Objective::kCost;
  config.core_hours_per_gpu_hour = 20;  // a core-hour must save a twentieth of a GPU-hour
  const Plan plan = decide(snapshot, config);
  const Plan usual = decide(snapshot, {});
  CHECK(plan_of(plan, "small").workers < plan_of(usual, "small").workers);
  CHECK(plan_of(plan, "small").workers > 0);
  CHECK(plan_of(plan, "small").reason == Reason::kFlat);
}

TEST_CASE("objectives have names, and a wrong one is answered with all of them") {
  for (const char* name : {"balanced", "throughput", "completion-time", "fair", "cost"}) {
    REQUIRE(parse_objective(name).ok());
    CHECK(to_string(*parse_objective(name)) == name);
  }
  CHECK_THAT(parse_objective("speed").error().message(), Catch::Contains("balanced, throughput, completion-time"));
}

TEST_CASE("what limits the job is named with the figures") {
  struct Row {
    const char* situation;
    Job job;
    Bottleneck want;
    const char* evidence;
  };
  Job reading = on_host("a", "h", 8, 60), receiving = on_host("a", "h", 8, 60), waiting = on_host("a", "h", 8, 60);
  for (Job* job : {&reading, &receiving, &waiting}) job->observation.measurement->local->busy_cores = 4;
  reading.observation.measurement->blocked_threads = 18;
  receiving.observation.measurement->remote = SourceRate{8000, 2};
  receiving.bytes_per_sample = 150'000;
  const Row rows[] = {
      {"its CPU is used up", on_host("a", "h", 8, 60), Bottleneck::kDataBoundCpu, "24 of 24 cores at work"},
      {"threads are blocked in reads", reading, Bottleneck::kDataBoundStorage, "18 threads blocked in reads"},
      {"the host's network is full", receiving, Bottleneck::kDataBoundNetwork, "network is 96 % full"},
      {"none of these", waiting, Bottleneck::kDataBoundOther, "4 of 24 cores at work"},
      {"the accelerator", on_host("a", "h", 8, 4), Bottleneck::kGpuBound, "waits 0 %, computes 100 % of the time"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    ClusterSnapshot snapshot = cluster({gpu_host("h")}, {row.job});
    snapshot.nodes[0].network_bytes_per_second = 1.25e9;
    const Plan plan = decide(snapshot, {});
    CHECK(to_string(plan.jobs[0].bottleneck) == to_string(row.want));
    CHECK_THAT(plan.jobs[0].evidence, Catch::Contains(row.evidence));
  }
}

TEST_CASE("modes that leave things alone leave the feeders alone, too") {
  Job off = on_host("off", "h", 4, 30);
  off.mode = Mode::kOff;
  const Plan plan = decide(cluster({gpu_host("h")}, {off, on_host("vision", "h", 4, 30)}), {});
  CHECK(plan_of(plan, "off").local[0] == LocalCpu{"h", 12'000, 24'000});
  CHECK(local(plan, "vision") == 12'000);
}

}  // namespace
}  // namespace sluice::scheduler::testing
