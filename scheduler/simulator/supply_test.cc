#include "scheduler/simulator/supply.h"

#include "scheduler/simulator/placement.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

// Jobs that run on a floor, with grants set by hand.
struct World {
  Cluster cluster;
  Workload specs;
  std::vector<JobState> jobs;
  Floor floor;

  World(Cluster c, Workload w) : cluster(std::move(c)), specs(std::move(w)), jobs(specs.size()), floor(cluster, jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].spec = &specs[i];
      jobs[i].index = static_cast<int>(i);
      jobs[i].knee_cores = specs[i].knee_cores_per_gpu * specs[i].gpus;
      floor.start_trainer(jobs[i], floor.find_hosts(specs[i].gpus), 0);
    }
  }
  void share() {
    for (int node = 0; node < static_cast<int>(floor.nodes().size()); ++node)
      share_host_cpu(floor.nodes()[node], node, jobs, cluster.physics);
  }
  void add_workers(JobState& job, int node, int count) {
    for (int i = 0; i < count; ++i) job.workers.push_back({"w", node, 1000, 0, 0, 0, -1});
    floor.nodes()[node].worker_millicores += 1000 * count;
  }
  Rates rates(int i, double storage = 1e9) { return rates_of(jobs[i], floor.nodes(), 100, storage, cluster.physics); }
};

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
  share_network(world.floor.nodes(), world.jobs, {0}, 100, world.cluster.physics);
  CHECK(world.jobs[0].hosts[0].network_factor < 0.6);
  CHECK(world.rates(0).speed < free);
  CHECK(world.rates(0).speed > progress(24.0 / 96, 6));
}

TEST_CASE("A job that waits for the storage leaves its CPU idle, and its threads blocked") {
  World world(testing::small_cluster(), {testing::job(0, 8, 100, 1)});
  world.share();
  CHECK(world.rates(0).per_second.reading_thread_seconds == 0);
  const Rates rates = world.rates(0, 0.4);
  CHECK(rates.speed == Approx(0.4).epsilon(0.01));
  CHECK(rates.per_second.reading_thread_seconds > 1);
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

TEST_CASE("Shares are fair in the sense of max-min") {
  CHECK(fair_shares({1, 10, 10}, 9) == std::vector<double>{1, 4, 4});
  CHECK(fair_shares({1, 2}, 9) == std::vector<double>{1, 2});
  CHECK(fair_shares({}, 9).empty());
}

}  // namespace
}  // namespace sluice::simulator
