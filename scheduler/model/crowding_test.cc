#include "scheduler/model/crowding.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

// Trainers whose steps are longer where feeders take more than their share, windows of 15 s, and noise on every figure.
struct Cluster {
  struct Trainer {
    std::string host;
    CrowdingMeans means;
    double compute_seconds = 0.1;  // where feeders keep to their share
    double samples = 64;
  };

  explicit Cluster(int trainers) : jobs(trainers) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].host = "node-" + std::to_string(i);
      jobs[i].compute_seconds = 0.02 * static_cast<double>(i + 1);
    }
  }

  double noisy(double value) { return value * std::exp(std::normal_distribution(0.0, noise)(random)); }

  void see(int windows) {
    for (int i = 0; i < windows; ++i) {
      now_seconds += 15;
      for (Trainer& job : jobs) {
        const bool is_free = job.means.feeders != CrowdingMeans::Feeders::kKept;
        // One draw after the other: compilers differ in the order of arguments.
        const double compute_seconds = noisy(job.compute_seconds * (is_free ? 1 + costs : 1));
        const double samples = noisy(job.samples);
        job.means.take(compute_seconds, samples, now_seconds, 15, all);
      }
      all.judge();
      for (Trainer& job : jobs) job.means.plan(1, all.keeps_to_shares(job.host, now_seconds) ? 1 : 0, now_seconds);
    }
  }

  int kept() const {
    return static_cast<int>(std::count_if(jobs.begin(), jobs.end(), [](const Trainer& job) {
      return job.means.feeders == CrowdingMeans::Feeders::kKept;
    }));
  }

  std::vector<Trainer> jobs;
  double costs = 0;
  double noise = 0.05;
  double now_seconds = 1000;
  Crowding all;
  std::mt19937_64 random{1};
};

using Verdict = Crowding::Verdict;

TEST_CASE("trials show what feeders beyond their share cost, through noise, and measure it") {
  struct Row {
    double costs, noise;
    int windows;
  };
  for (const Row row : {Row{0.1, 0.05, 100}, Row{0.4, 0.05, 60}, Row{0.1, 0.3, 1000}, Row{0.4, 0.3, 200}}) {
    CAPTURE(row.costs, row.noise);
    Cluster cluster(16);
    cluster.costs = row.costs;
    cluster.noise = row.noise;
    cluster.see(row.windows);
    CHECK(cluster.all.verdict == Verdict::kHarmful);
    CHECK(cluster.all.rise() == Approx(row.costs).epsilon(0.4));
    CHECK(cluster.kept() >= 15);
  }
}

TEST_CASE("what proves no harm") {
  Cluster cluster(16);
  SECTION("steps as long as ever") {}
  SECTION("steps that are 0.5 % longer") { cluster.costs = 0.005; }
  SECTION("shorter steps") { cluster.costs = -0.1; }
  cluster.see(1000);
  CHECK(cluster.all.verdict == Verdict::kHarmless);
  CHECK(cluster.kept() <= 1);
  cluster.noise = 0.3;
  cluster.see(3000);
  CHECK(cluster.all.verdict == Verdict::kHarmless);
}

TEST_CASE("noise of 30 % alone is never a proof of harm") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Cluster cluster(8);
    cluster.random.seed(seed);
    cluster.noise = 0.3;
    for (int i = 0; i < 20; ++i) {
      cluster.see(100);
      REQUIRE(cluster.all.verdict != Verdict::kHarmful);
    }
  }
}

TEST_CASE("a verdict is overthrown by what trials show later") {
  Cluster cluster(16);
  cluster.costs = 0.2;
  cluster.see(300);
  REQUIRE(cluster.all.verdict == Verdict::kHarmful);
  cluster.costs = 0.01;  // hosts are less full now: it stays
  cluster.see(1000);
  CHECK(cluster.all.verdict == Verdict::kHarmful);
  cluster.costs = -0.05;
  cluster.see(6000);
  CHECK(cluster.all.verdict == Verdict::kHarmless);
  cluster.costs = 0.2;
  cluster.see(6000);
  CHECK(cluster.all.verdict == Verdict::kHarmful);
}

// A trainer after ten windows of 15 s, 0.1 s a batch, the last one of which ended at 1150 s.
struct Trainer {
  CrowdingMeans means;
  Crowding all;

  explicit Trainer(int shared_hosts = 1) {
    means.plan(shared_hosts, 0, 0);
    for (int i = 1; i <= 10; ++i) take(0.1, 1000 + 15.0 * i);
  }
  void take(double compute_seconds, double window_end_seconds, double samples = 64) {
    means.take(compute_seconds, samples, window_end_seconds, 15, all);
  }
};

TEST_CASE("windows that tell nothing change nothing") {
  const auto changes = [](Trainer trainer, double window_end_seconds) {
    const Trainer before = trainer;
    trainer.take(0.2, window_end_seconds);
    return !(trainer.means == before.means && trainer.all == before.all);
  };
  Trainer trainer;
  CHECK(changes(trainer, 1165));
  CHECK_FALSE(changes(trainer, 1160));  // it overlaps with the last one
  trainer.means.plan(1, 1, 1150);
  CHECK_FALSE(changes(trainer, 1194));  // it began before feeders had followed the plan
  CHECK(changes(trainer, 1196));
  trainer.means.plan(2, 1, 1150);
  CHECK_FALSE(changes(trainer, 1300));     // its hosts differ
  CHECK_FALSE(changes(Trainer(0), 1300));  // no other trainer is there
}

TEST_CASE("batches of another size begin a series anew") {
  Trainer trainer;
  trainer.means.plan(1, 1, 1150);
  trainer.take(0.2, 1300, 128);
  CHECK(trainer.means.windows == 1);
  CHECK(trainer.all.kept_squares == 0);
  trainer.take(0.2, 1315, 128);
  CHECK(trainer.means.windows == 2);
  CHECK(trainer.all.compute_squares == Approx(0).margin(1e-12));
}

TEST_CASE("one window, however long its step, proves nothing") {
  Trainer trainer;
  trainer.means.plan(1, 1, 1150);
  trainer.take(0.05, 1300);
  trainer.all.judge();
  CHECK(trainer.all.slope() < -0.5);
  CHECK(trainer.all.verdict == Verdict::kUnknown);
}

}  // namespace
}  // namespace sluice::scheduler
