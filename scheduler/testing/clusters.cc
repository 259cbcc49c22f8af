#include "scheduler/testing/clusters.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "scheduler/testing/builders.h"

namespace sluice::scheduler::testing {
namespace {

constexpr double kRatePerCore = 1000;
constexpr double kRemoteEfficiency = 0.77;

class Maker {
 public:
  Maker(unsigned seed, const ClusterShape& shape) : random_(seed), shape_(shape) {
    snapshot_.taken_at_seconds = kNowSeconds;
  }

  ClusterSnapshot make() {
    const int hosts = 1 + upto(shape_.most_hosts);
    const int cpu_nodes = upto(shape_.most_cpu_nodes + 1);
    const std::int64_t cores_per_gpu = 2 + upto(5);
    for (int i = 0; i < hosts; ++i) add_node("gpu" + std::to_string(i), 8000 * cores_per_gpu, 8);
    for (int i = 0; i < cpu_nodes; ++i) add_node("cpu" + std::to_string(i), 4000 * (1 + upto(8)), 0);
    if (shape_.quotas) snapshot_.quotas = {{"team", 1000 * upto(20), 8 + upto(8)}};
    for (int host = 0; host < hosts; ++host)
      while (snapshot_.nodes[host].gpus_in_use < 8 && upto(6) > 0) add_job(host);
    if (shape_.waiting_jobs)
      for (int i = upto(3); i >= 0; --i) add_waiting();
    return std::move(snapshot_);
  }

 private:
  int upto(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void add_node(const std::string& name, std::int64_t millicores, int gpus) {
    Node node{.name = name, .allocatable_millicores = millicores, .gpus = gpus};
    room_.push_back(millicores);
    snapshot_.nodes.push_back(node);
  }

  Job named() {
    Job job;
    job.id = {"default", "j" + std::to_string(100 + snapshot_.jobs.size())};
    job.weight = upto(3) > 0 ? 100 : 50 + upto(200);
    job.max_workers = 200;
    if (shape_.priorities && upto(4) == 0) job.priority = upto(3) - 1;
    if (upto(2) == 0) job.remaining_seconds = 120 + upto(40'000);
    if (shape_.quotas && upto(2) == 0) job.quota = "team";
    return job;
  }

  void add_job(int host) {
    Node& node = snapshot_.nodes[host];
    Job job = named();
    job.running = true;
    job.local_adjustable = true;
    job.gpus = job.ranks = std::min(1 << upto(4), 8 - node.gpus_in_use);
    node.gpus_in_use += job.gpus;
    // What the hosts' rooms allow all of its jobs together: the share.
    const std::int64_t local = node.allocatable_millicores * job.gpus / 8;
    room_[host] -= local;
    job.hosts = {{node.name, job.ranks, job.gpus, local, node.allocatable_millicores}};
    give_workers(job);
    const double knee = job.gpus * (upto(3) == 0 ? 0.5 : 0.5 + (shape_.most_knee_per_gpu - 0.5) * upto(1000) / 1000);
    if (!shape_.missing_metrics || upto(4) > 0)
      measure(job, knee, shape_.noise, random_());
    else
      job.observation.missing_reason = "no metrics";
    snapshot_.jobs.push_back(std::move(job));
  }

  void give_workers(Job& job) {
    for (int i = upto(8); i > 0; --i) {
      const int at = upto(static_cast<int>(snapshot_.nodes.size()));
      if (snapshot_.nodes[at].gpus > 0 || room_[at] < job.worker_millicores) continue;
      room_[at] -= job.worker_millicores;
      job.workers.push_back({job.id.name + "-worker-" + std::to_string(i), snapshot_.nodes[at].name, true,
                             kNowSeconds - 500 - upto(500), kNowSeconds - 400, false});
      ++job.allocated_workers;
    }
  }

  void add_waiting() {
    Job job = named();
    job.ranks = 1;
    job.gpus = 1 << upto(4);
    job.waiting = Waiting{kNowSeconds - upto(20'000), job.gpus, 1000 * job.gpus, upto(4) == 0};
    snapshot_.jobs.push_back(std::move(job));
  }

 public:
  static void measure(Job& job, double knee, double noise, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, noise);
    const auto jitter = [&] { return noise > 0 ? std::exp(normal(random)) : 1; };
    double local = 0;
    for (const TrainerHost& host : job.hosts) local += static_cast<double>(host.request_millicores) / 1000;
    FluidJob physics{.demand = kRatePerCore * knee * jitter(),
                     .local_rate = kRatePerCore * jitter(),
                     .remote_rate = kRatePerCore * kRemoteEfficiency * jitter(),
                     .local_cores = local};
    job.observation = {physics.steady(job.allocated_workers * 1.0, kNowSeconds - 5), ""};
  }

 private:
  std::mt19937 random_;
  ClusterShape shape_;
  ClusterSnapshot snapshot_;
  std::vector<std::int64_t> room_;
};

}  // namespace

ClusterSnapshot random_cluster(unsigned seed, const ClusterShape& shape) { return Maker(seed, shape).make(); }

ClusterSnapshot observed_again(ClusterSnapshot snapshot, const ClusterSnapshot& truth, unsigned seed, double noise) {
  snapshot.taken_at_seconds += 30;
  for (std::size_t i = 0; i < snapshot.jobs.size(); ++i) {
    Job& job = snapshot.jobs[i];
    if (!job.observation.measurement) continue;
    const Measurement& exact = *truth.jobs[i].observation.measurement;
    const double window_end = job.observation.measurement->window_end_seconds + 30;
    Maker::measure(job, exact.samples_per_second / exact.compute_share / kRatePerCore, noise, seed += 7919);
    job.observation.measurement->window_end_seconds = window_end;
  }
  return snapshot;
}

}  // namespace sluice::scheduler::testing
