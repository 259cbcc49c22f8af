#include "scheduler/model/crowding.h"

#include <cmath>
#include <random>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

constexpr Config kConfig;

// Trainers whose steps a full host makes longer, windows of 15 s, and noise on every figure.
struct Cluster {
  struct Trainer {
    CrowdingMeans means;
    double compute_seconds = 0.1;  // on an idle host
    double samples = 64;
    double load = 0;
  };

  explicit Cluster(int trainers) : jobs(trainers) {
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].compute_seconds = 0.02 * static_cast<double>(i + 1);
  }

  double noisy(double value) { return value * std::exp(std::normal_distribution(0.0, noise)(random)); }

  void see(int windows) {
    for (int i = 0; i < windows; ++i) {
      now_seconds += 15;
      for (Trainer& job : jobs)
        job.means.take(noisy(job.load), noisy(job.compute_seconds * (1 + full_host_costs * job.load)),
                       noisy(job.samples), now_seconds, 15, all);
      all.judge(kConfig);
    }
  }

  // The load of each host changes every ten windows, as jobs come and go.
  void see_changing_loads(int changes) {
    std::uniform_real_distribution load(0.0, 1.0);
    for (int i = 0; i < changes; ++i) {
      for (Trainer& job : jobs) job.load = load(random);
      see(10);
    }
  }

  std::vector<Trainer> jobs;
  double full_host_costs = 0;
  double noise = 0.05;
  double now_seconds = 1000;
  Crowding all;
  std::mt19937_64 random{1};
};

TEST_CASE("what a full host costs is proven from the trainers of a cluster, and measured") {
  for (const double costs : {0.15, 0.4, 1.0}) {
    CAPTURE(costs);
    Cluster cluster(8);
    cluster.full_host_costs = costs;
    cluster.see_changing_loads(20);
    CHECK(cluster.all.is_proven);
    CHECK(cluster.all.rise() == Approx(costs).epsilon(0.2));
  }
}

TEST_CASE("a trainer that began on a full host adds its part once the host empties") {
  Cluster cluster(2);
  cluster.full_host_costs = 0.4;
  for (auto& job : cluster.jobs) job.load = 1;
  cluster.see(40);
  CHECK_FALSE(cluster.all.is_proven);
  for (auto& job : cluster.jobs) job.load = 0.2;
  cluster.see(20);
  CHECK(cluster.all.is_proven);
}

TEST_CASE("what is no proof that full hosts slow trainers down") {
  Cluster cluster(8);
  SECTION("steps as long as ever") {}
  SECTION("steps as long as ever, and noise of 30 % on every figure") { cluster.noise = 0.3; }
  SECTION("steps that are 3 % longer") { cluster.full_host_costs = 0.03; }
  SECTION("shorter steps") { cluster.full_host_costs = -0.3; }
  cluster.see_changing_loads(100);
  CHECK_FALSE(cluster.all.is_proven);
}

TEST_CASE("larger batches on a fuller host are another series") {
  Cluster cluster(4);
  for (int round = 0; round < 20; ++round) {
    const double factor = round % 2 == 0 ? 1 : 2;
    for (std::size_t i = 0; i < cluster.jobs.size(); ++i) {
      cluster.jobs[i].samples = 64 * factor;
      cluster.jobs[i].compute_seconds = 0.02 * static_cast<double>(i + 1) * factor;
      cluster.jobs[i].load = 0.4 * factor;
    }
    cluster.see(10);
  }
  CHECK_FALSE(cluster.all.is_proven);
}

TEST_CASE("one window, however long its step, proves nothing") {
  Cluster cluster(1);
  cluster.see(60);
  cluster.jobs[0].load = 1;
  cluster.jobs[0].compute_seconds *= 1.5;
  cluster.see(1);
  CHECK_FALSE(cluster.all.is_proven);
}

TEST_CASE("a window that overlaps with the last one changes nothing") {
  CrowdingMeans means;
  Crowding all;
  means.take(0.5, 0.1, 64, 1000, 15, all);
  means.take(0.2, 0.2, 64, 1015, 15, all);
  const CrowdingMeans before = means;
  const Crowding all_before = all;
  means.take(0.9, 0.4, 64, 1020, 15, all);
  CHECK(means == before);
  CHECK(all == all_before);
}

TEST_CASE("a proof stays while loads hardly change, and goes once full hosts cost nothing any more") {
  Cluster cluster(8);
  cluster.full_host_costs = 0.4;
  cluster.see_changing_loads(20);
  REQUIRE(cluster.all.is_proven);
  for (auto& job : cluster.jobs) job.load = 0.3;
  cluster.see(1000);
  CHECK(cluster.all.is_proven);
  cluster.full_host_costs = 0;
  cluster.see_changing_loads(400);
  CHECK_FALSE(cluster.all.is_proven);
}

}  // namespace
}  // namespace sluice::scheduler
