#include "scheduler/simulator/world/supply.h"

#include <cmath>

#include "scheduler/simulator/testing/manual_world.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using World = testing::ManualWorld;

TEST_CASE("Without a limit above the request a job has its request, used or not") {
  World world(testing::small_cluster(), {testing::job(0, 4, 100, 10), testing::job(0, 4, 100, 0.5)});
  world.share();
  CHECK(world.jobs[0].hosts[0].cores == 12);
  CHECK(world.jobs[1].hosts[0].cores == 12);
}

TEST_CASE("Bursting jobs share what is idle by their requests, and never more than there is") {
  World world(testing::small_cluster(), {testing::job(0, 4, 100, 10), testing::job(0, 4, 100, 0.5)});
  for (JobState& job : world.jobs) job.hosts[0].limit_millicores = 24000;
  world.share();
  // The second needs 2 of its 12 cores; the first may use what is left.
  CHECK(world.jobs[0].hosts[0].cores == Approx(24 - 2).margin(0.5));
  double busy = 0;
  for (int i = 0; i < 2; ++i) busy += world.rates(i).per_second.local_busy_core_seconds;
  CHECK(busy <= 24 + 1e-6);
}

TEST_CASE("Two starved bursting jobs get no more than their shares") {
  World world(testing::small_cluster(), {testing::job(0, 4, 100, 10), testing::job(0, 4, 100, 10)});
  for (JobState& job : world.jobs) job.hosts[0].limit_millicores = 24000;
  world.share();
  CHECK(world.jobs[0].hosts[0].cores == Approx(12).epsilon(0.01));
}

TEST_CASE("Remote supply goes to the worst-fed host of a gang first") {
  World world(testing::small_cluster(), {testing::job(0, 16, 100, 3)});
  JobState& job = world.jobs[0];
  job.hosts[0].request_millicores = job.hosts[0].limit_millicores = 24000;
  job.hosts[1].request_millicores = job.hosts[1].limit_millicores = 12000;
  world.share();
  CHECK(world.rates(0).supply_ratio == Approx(0.5));
  world.add_workers(job, 2, 10);  // 7.7 cores' worth
  CHECK(world.rates(0).supply_ratio == Approx((12 + 7.7) / 24));
  world.cluster.physics.slowest_rank = false;
  CHECK(world.rates(0).supply_ratio == Approx((36 + 7.7) / 48));
}

TEST_CASE("A full network takes from remote supply what does not get through") {
  Cluster cluster = testing::small_cluster();
  for (NodeGroup& group : cluster.groups) group.network_gbps = 10;
  World world(std::move(cluster), {testing::job(0, 8, 100, 12, 8)});
  world.add_workers(world.jobs[0], 2, 40);
  world.share();
  const double free = world.rates(0).speed;
  share_network(world.simulated.nodes(), world.jobs, {0}, 100, world.cluster.physics);
  CHECK(world.jobs[0].hosts[0].network_factor < 0.6);
  CHECK(world.rates(0).speed < free);
  CHECK(world.rates(0).speed > progress(24.0 / 96, 6));
}

TEST_CASE("A job that waits for the storage leaves its CPU idle, and its threads blocked") {
  World world(testing::small_cluster(), {testing::job(0, 8, 100, 1)});
  world.share();
  CHECK(world.rates(0).per_second.blocked_thread_seconds == 0);
  const Rates rates = world.rates(0, 0.4);
  CHECK(rates.speed == Approx(0.4).epsilon(0.01));
  CHECK(rates.per_second.blocked_thread_seconds > 1);
  CHECK(rates.per_second.local_busy_core_seconds < 0.5 * rates.local_cores);
}

TEST_CASE("Interference slows a trainer whose host is busy, not its data") {
  World world(testing::small_cluster(), {testing::job(0, 8, 100, 1)});
  world.cluster.physics.interference = 0.1;
  world.share();
  const Rates rates = world.rates(0);
  CHECK(rates.speed == Approx(0.9).epsilon(0.01));
  CHECK(rates.per_second.wait_seconds == Approx(0).margin(0.01));
}

TEST_CASE("Every figure of the accounting agrees with the others") {
  World world(testing::small_cluster(), {testing::job(0, 4, 100, 8)});
  world.add_workers(world.jobs[0], 2, 5);
  world.share();
  const Rates rates = world.rates(0);
  const Counters& each = rates.per_second;
  CHECK(each.compute_seconds + each.wait_seconds == Approx(1));
  CHECK(each.local_samples + each.remote_samples == Approx(each.samples));
  const double local_rate = each.local_samples / each.local_busy_core_seconds;
  const double remote_rate = each.remote_samples / each.remote_busy_core_seconds;
  CHECK(remote_rate / local_rate == Approx(0.77));
  CHECK(each.samples / each.compute_seconds / local_rate == Approx(8 * 4));  // D / mu_L is the knee
}

TEST_CASE("Local cores that do not add up supply less, but cost as much CPU") {
  World world(testing::small_cluster(), {testing::job(0, 4, 100, 10)});
  world.cluster.physics.local_exponent = 0.8;
  world.share();
  CHECK(world.jobs[0].hosts[0].cores == 12);
  CHECK(world.jobs[0].hosts[0].supply == Approx(std::pow(12, 0.8)));
  const Rates rates = world.rates(0);
  CHECK(rates.local_cores == 12);
  CHECK(rates.per_second.local_busy_core_seconds == Approx(12).epsilon(0.01));  // starved: all of it is busy
}

TEST_CASE("A worker supplies nothing before it is ready, half while it warms up, and nothing when it drains") {
  World world(testing::small_cluster(), {testing::job(0, 4, 100, 10)});
  world.cluster.physics.worker_warmup_speed = 0.5;
  world.share();
  JobState& job = world.jobs[0];
  struct Row {
    const char* state;
    WorkerState worker;
    double want;  // remote supply at 100 s
    double cores;
  };
  const Row rows[] = {
      {"starting", {"w", 2, 1000, 90, 110, 110, -1}, 0, 1},
      {"warming up", {"w", 2, 1000, 50, 90, 150, -1}, 0.5 * 0.77, 1},
      {"warm", {"w", 2, 1000, 50, 60, 70, -1}, 0.77, 1},
      {"twice the size", {"w", 2, 2000, 50, 60, 70, -1}, 1.54, 2},
      {"draining", {"w", 2, 1000, 50, 60, 70, 120}, 0, 1},
      {"without a node", {"w", -1, 1000, 50, 60, 70, -1}, 0, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.state);
    job.workers = {row.worker};
    CHECK(world.rates(0).remote_supply == Approx(row.want));
    CHECK(world.rates(0).remote_cores == Approx(row.cores));
  }
}

TEST_CASE("The network of a sender slows the jobs that it sends to, and no other") {
  Cluster cluster = testing::small_cluster();
  cluster.groups[0].network_gbps = 100;
  cluster.groups[1].network_gbps = 4;  // where the workers are
  World world(std::move(cluster), {testing::job(0, 8, 100, 6, 2), testing::job(0, 8, 100, 6, 2)});
  world.add_workers(world.jobs[0], 2, 20);
  world.share();
  share_network(world.simulated.nodes(), world.jobs, {0, 1}, 100, world.cluster.physics);
  CHECK(world.jobs[0].hosts[0].network_factor < 1);
  CHECK(world.jobs[1].hosts[0].network_factor == 1);
  // What arrives is what the network carries: 4 Gb/s of the 2 Gb/s that each of 8 GPUs would take.
  const Rates rates = world.rates(0);
  const double carried = 16 * rates.speed * rates.remote_supply / (rates.local_supply + rates.remote_supply);
  CHECK(carried <= 4 * 1.25);  // the flow is worked out before the speed falls: within a quarter
  CHECK(carried >= 4 * 0.75);
}

TEST_CASE("A full node slows what comes from it, and only that") {
  struct Row {
    const char* situation;
    int on_full, elsewhere;
    WorkerState one_more;
    double want;  // share of its remote supply that gets through
  };
  // On gpu-0, whose network carries nothing to speak of; or on cpu-0, whose network is wide.
  const WorkerState none = {"w", -1, 1000, 0, 0, 0, -1};
  const Row rows[] = {
      {"all of them there", 10, 0, none, 0},
      {"half of them", 5, 5, none, 0.5},
      {"one of ten", 1, 9, none, 0.9},
      {"one that is starting", 0, 10, {"w", 0, 1000, 0, 200, 200, -1}, 1},
      {"one that drains", 0, 10, {"w", 0, 1000, 0, 0, 0, 200}, 1},
      {"one that waits for a node", 0, 10, none, 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster = testing::small_cluster();
    cluster.groups = {{"gpu", 1, 8, 24, 1e-9, false}, {"wide", 1, 8, 24, 1e6, false}, {"cpu", 1, 0, 64, 1e6, false}};
    // The one that runs on the thin node has a worker there, so that its network is in use.
    World world(std::move(cluster), {testing::job(0, 8, 100, 6, 2), testing::job(0, 8, 100, 6, 2)});
    world.add_workers(world.jobs[0], 0, 1);
    world.add_workers(world.jobs[1], 0, row.on_full);
    world.add_workers(world.jobs[1], 2, row.elsewhere);
    world.jobs[1].workers.push_back(row.one_more);
    world.share();
    share_network(world.simulated.nodes(), world.jobs, {0, 1}, 100, world.cluster.physics);
    CHECK(world.jobs[1].hosts[0].network_factor == Approx(row.want).margin(1e-6));
    CHECK(world.rates(1).remote_supply == Approx(0.77 * (row.on_full + row.elsewhere) * row.want).margin(1e-6));
  }
}

TEST_CASE("What a worker sends to the trainer on its own node crosses no network") {
  struct Row {
    const char* situation;
    int gpus;                  // 16: a gang on both hosts
    std::vector<int> workers;  // on gpu-0, gpu-1, cpu-0
    double want;               // share of its remote supply that gets through, where networks carry nothing
  };
  const Row rows[] = {
      {"all on its own host", 8, {10, 0, 0}, 1},
      {"all on another host", 8, {0, 10, 0}, 0},
      {"three quarters on its own", 8, {9, 0, 3}, 0.75},
      {"a gang, beside one of its ranks: half is for the other", 16, {10, 0, 0}, 0},
      {"a gang, beside both ranks: half of each goes across", 16, {5, 5, 0}, 0.5},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster = testing::small_cluster();
    for (NodeGroup& group : cluster.groups) group.network_gbps = 1e-9;
    World world(std::move(cluster), {testing::job(0, row.gpus, 100, 6, 2)});
    for (int node = 0; node < 3; ++node) world.add_workers(world.jobs[0], node, row.workers[node]);
    world.share();
    share_network(world.simulated.nodes(), world.jobs, {0}, 100, world.cluster.physics);
    const int all = row.workers[0] + row.workers[1] + row.workers[2];
    CHECK(world.rates(0).remote_supply == Approx(0.77 * all * row.want).margin(1e-6));
  }
}

TEST_CASE("Who evaluates takes nothing from the network, and leaves it to the others") {
  Cluster cluster = testing::small_cluster();
  cluster.groups[0].network_gbps = 1000;
  cluster.groups[1].network_gbps = 8;
  World world(std::move(cluster), {testing::job(0, 8, 100, 6, 2), testing::job(0, 8, 100, 6, 2)});
  for (JobState& job : world.jobs) world.add_workers(job, 2, 20);
  world.share();
  const auto factor_of_first = [&] {
    share_network(world.simulated.nodes(), world.jobs, {0, 1}, 100, world.cluster.physics);
    return world.jobs[0].hosts[0].network_factor;
  };
  const double together = factor_of_first();
  world.jobs[1].evaluation_ends_seconds = 200;
  CHECK(together < 1);
  CHECK(factor_of_first() == Approx(std::min(1.0, 2 * together)));
  world.jobs[1].evaluation_ends_seconds = -1;
  CHECK(factor_of_first() == together);
}

TEST_CASE("Workers that warm up send what they deliver, and no more") {
  Cluster cluster = testing::small_cluster();
  for (NodeGroup& group : cluster.groups) group.network_gbps = 4;
  World world(std::move(cluster), {testing::job(0, 8, 100, 6, 2)});
  world.cluster.physics.worker_warmup_speed = 0.1;
  for (int i = 0; i < 20; ++i) world.jobs[0].workers.push_back({"w", 2, 1000, 0, 50, 150, -1});
  world.share();
  share_network(world.simulated.nodes(), world.jobs, {0}, 100, world.cluster.physics);
  CHECK(world.jobs[0].hosts[0].network_factor == 1);  // 1.5 of 25 cores' worth, of 16 Gb/s
}

TEST_CASE("A trainer suffers from all data work on its host: its own, its neighbours' and that of workers") {
  struct Row {
    const char* situation;
    int neighbour_gpus, workers;
    double busy;  // of 24 cores
  };
  const Row rows[] = {{"itself", 0, 0, 12},
                      {"a neighbour", 2, 0, 18},
                      {"workers", 0, 6, 18},
                      {"both", 2, 6, 24},
                      {"workers alone, all that is left", 0, 12, 24}};
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Workload jobs = {testing::job(0, 4, 100, 1e-6)};
    if (row.neighbour_gpus > 0) jobs.push_back(testing::job(0, row.neighbour_gpus, 100, 1));
    World world(testing::small_cluster(), jobs);
    world.cluster.physics.interference = 0.4;
    world.add_workers(world.jobs[0], 0, row.workers);
    world.share();
    CHECK(world.rates(0).speed == Approx(1 - 0.4 * row.busy / 24));
  }
}

TEST_CASE("The feeders' least CPU shrinks where a host has no more, and no feeder works with CPU that is not there") {
  struct Row {
    const char* situation;
    std::int64_t always, requests;
    double want;  // cores of each of three feeders
  };
  const Row rows[] = {
      {"less than they request", 10, 6000, 6},
      {"more than they request", 7000, 6000, 7},
      {"more than there is", 12000, 6000, 8},
      {"some have it from others", 12000, 0, 8},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    World world(testing::small_cluster(),
                {testing::job(0, 2, 100, 9), testing::job(0, 2, 100, 9), testing::job(0, 2, 100, 9)});
    world.cluster.physics.min_local_millicores = row.always;
    for (JobState& job : world.jobs) job.hosts[0].request_millicores = job.hosts[0].limit_millicores = row.requests;
    world.share();
    for (int i = 0; i < 3; ++i) CHECK(world.rates(i).local_cores == Approx(row.want));
    CHECK(world.simulated.nodes()[0].trainer_cores <= 24 + 1e-9);
  }
}

TEST_CASE("Where workers have the whole host, its feeder has nothing, and waits") {
  World world(testing::small_cluster(), {testing::job(0, 8, 100, 9)});
  JobState& job = world.jobs[0];
  job.hosts[0].request_millicores = job.hosts[0].limit_millicores = 0;
  for (int i = 0; i < 24; ++i) job.workers.push_back({"w", 0, 1000, 0, 200, 200, -1});  // they start
  world.simulated.nodes()[0].worker_millicores = 24000;
  world.share();
  const Rates rates = world.rates(0);
  CHECK(rates.speed == 0);
  CHECK(rates.per_second.wait_seconds == 1);
  CHECK(rates.per_second.samples == 0);
  CHECK(rates.remote_cores == 24);
}

TEST_CASE("Without remote workers, or without samples to send, a thin network is no trouble") {
  Cluster cluster = testing::small_cluster();
  for (NodeGroup& group : cluster.groups) group.network_gbps = 0.001;
  World world(std::move(cluster), {testing::job(0, 8, 100, 6, 2), testing::job(0, 8, 100, 6, 0)});
  world.add_workers(world.jobs[1], 2, 20);
  world.share();
  share_network(world.simulated.nodes(), world.jobs, {0, 1}, 100, world.cluster.physics);
  CHECK(world.jobs[0].hosts[0].network_factor == 1);
  CHECK(world.jobs[1].hosts[0].network_factor == 1);
}

TEST_CASE("Nothing supplied is no speed, and no division by nothing") {
  World world(testing::small_cluster(), {testing::job(0, 4, 100, 10)});
  world.cluster.physics.min_local_millicores = 1e-9;
  world.jobs[0].hosts[0].request_millicores = world.jobs[0].hosts[0].limit_millicores = 0;
  world.share();
  const Rates rates = world.rates(0);
  CHECK(rates.speed < 1e-6);
  CHECK(std::isfinite(rates.per_second.samples));
  CHECK(std::isfinite(rates.per_second.local_samples));
}

TEST_CASE("An evaluation takes no data, and its workers stand idle") {
  World world(testing::small_cluster(), {testing::job(0, 4, 100, 10)});
  world.add_workers(world.jobs[0], 2, 5);
  world.share();
  world.jobs[0].evaluation_ends_seconds = 200;
  const Rates rates = world.rates(0);
  CHECK(rates.speed == 0);
  CHECK(rates.per_second.samples == 0);
  CHECK(rates.remote_cores == 5);  // they are paid for all the same
}

TEST_CASE("What is counted while time passes is the rates times the time, up to the last arrival apart") {
  World world(testing::small_cluster(), {testing::job(0, 4, 100, 10)});
  world.add_workers(world.jobs[0], 2, 5);
  world.share();
  JobState& job = world.jobs[0];
  job.rates = world.rates(0);
  job.last_arrival_seconds = 30;
  advance(job, 20);
  advance(job, 20);  // no time passes
  advance(job, 50);
  CHECK(job.done_seconds == Approx(50 * job.rates.speed));
  CHECK(job.busy_gpu_seconds == Approx(4 * 50 * job.rates.speed));
  CHECK(job.busy_gpu_seconds_while_arriving == Approx(4 * 30 * job.rates.speed));
  CHECK(job.allocated_gpu_seconds == Approx(200));
  CHECK(job.core_seconds == Approx(50 * (12 + 5)));
  CHECK(job.worker_core_seconds == Approx(50 * 5));
  CHECK(job.counters.samples == Approx(50 * job.rates.per_second.samples));
  job.phase = Phase::kWaiting;
  advance(job, 80);
  CHECK(job.allocated_gpu_seconds == Approx(200));  // who waits has nothing
}

}  // namespace
}  // namespace sluice::simulator
