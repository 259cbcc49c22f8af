#include "scheduler/testing/clusters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>

#include "scheduler/testing/builders.h"
#include "scheduler/testing/rules.h"

namespace sluice::scheduler::testing {
namespace {

constexpr double kRatePerCore = 1000;
constexpr double kRemoteEfficiency = 0.77;
constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

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
    if (shape_.quotas) snapshot_.quotas = {{"team", 1000 * upto(20)}};
    for (int host = 0; host < hosts; ++host)
      while (gpus_in_use_[host] < 8 && upto(6) > 0) add_job(host);
    if (shape_.budget && upto(2) == 0) snapshot_.budget_per_hour = 0.1 * upto(60);
    if (shape_.budget && shape_.quotas && upto(2) == 0) snapshot_.quotas[0].budget_per_hour = 0.1 * upto(30);
    if (shape_.cordoned) restrict_nodes();
    return std::move(snapshot_);
  }

 private:
  int upto(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void add_node(const std::string& name, std::int64_t millicores, int gpus) {
    Node node{.name = name, .allocatable_millicores = millicores, .gpus = gpus};
    if (shape_.prices) node.spot = gpus == 0 && upto(3) == 0;
    if (shape_.prices) node.price_per_hour = (node.spot ? 0.02 : 0.05) * static_cast<double>(millicores) / 1000 + gpus;
    if (shape_.cheap_hosts && upto(3) == 0) node.price_per_hour = 0.01 * static_cast<double>(millicores) / 1000;
    if (shape_.memory && upto(3) > 0) node.free_memory_bytes = kGibibyte * upto(24);
    if (shape_.groups) node.group = upto(4);
    if (shape_.networks && upto(3) > 0) node.network_bytes_per_second = 1.25e8 * (1 + upto(20));
    room_.push_back(millicores);
    gpus_in_use_.push_back(0);
    snapshot_.nodes.push_back(node);
  }

  // Only now, so that workers stand there, too.
  void restrict_nodes() {
    for (Node& node : snapshot_.nodes)
      if (upto(5) == 0) node.schedulable = false;
  }

  Job named() {
    Job job;
    job.id = {"default", "j" + std::to_string(100 + snapshot_.jobs.size())};
    job.weight = upto(3) > 0 ? 100 : 50 + upto(200);
    job.max_workers = 200;
    if (shape_.priorities && upto(4) == 0) job.priority = upto(3) - 1;
    if (shape_.quotas && upto(2) == 0) job.quota = "team";
    if (shape_.worker_sizes) job.worker_millicores = std::array{250, 500, 1000, 3000}[upto(4)];
    if (shape_.memory) job.worker_memory_bytes = kGibibyte * upto(4);
    if (shape_.networks && upto(2) == 0) job.bytes_per_sample = 10'000 * (1 + upto(20));
    if (shape_.groups && upto(2) == 0) job.closed_groups = {upto(2) == 0, upto(2) == 0, upto(3) == 0};
    if (shape_.minima && upto(3) == 0) job.min_workers = upto(4);
    if (shape_.minima && upto(3) == 0) job.max_workers = job.min_workers + upto(8);
    if (shape_.modes) {
      job.mode = std::array{Mode::kAuto, Mode::kAuto, Mode::kAuto, Mode::kRecommend, Mode::kOff}[upto(5)];
      job.placement = std::array{Placement::kAuto, Placement::kAuto, Placement::kAuto, Placement::kRemote,
                                 Placement::kLocal}[upto(5)];
    }
    return job;
  }

  // Ranks of the job on a host, with the GPU-proportional share of its CPU.
  void stand_on(int host, int most_gpus, Job& job) {
    Node& node = snapshot_.nodes[host];
    const int gpus = std::min(most_gpus, node.gpus - gpus_in_use_[host]);
    const std::int64_t share = node.allocatable_millicores * gpus / 8;
    if (gpus == 0 || room_[host] < share) return;
    gpus_in_use_[host] += gpus;
    room_[host] -= share;
    if (!job.local_adjustable) node.requested_by_others_millicores += share;
    job.hosts.push_back({node.name, gpus, gpus, share, job.local_adjustable ? node.allocatable_millicores : share});
    job.gpus += gpus;
    job.ranks = job.gpus;
  }

  void add_job(int host) {
    Job job = named();
    job.running = true;
    job.local_adjustable = !shape_.fixed_feeders || upto(3) > 0;
    const int gpus = 1 << upto(4);
    stand_on(host, gpus, job);
    const bool gang = shape_.gangs && upto(3) == 0;
    for (int other = 0; gang && other < std::ssize(snapshot_.nodes); ++other)
      if (other != host && snapshot_.nodes[other].gpus > 0 && upto(2) == 0) stand_on(other, gpus, job);
    if (job.hosts.empty()) {
      gpus_in_use_[host] = 8;  // workers have taken the CPU of the rest
      return;
    }
    give_workers(job);
    const double knee = job.gpus * (upto(3) == 0 ? 0.5 : 0.5 + (shape_.most_knee_per_gpu - 0.5) * upto(1000) / 1000);
    if (!shape_.missing_metrics || upto(4) > 0)
      measure(job, knee, shape_.noise, random_());
    else
      job.observation.missing_reason = "no metrics";
    if (const int seconds = upto(2) == 0 ? 120 + upto(40'000) : 0; seconds > 0 && job.observation.measurement)
      remains(seconds, job);
    snapshot_.jobs.push_back(std::move(job));
  }

  void give_workers(Job& job) {
    for (int i = upto(8); i > 0; --i) {
      const int at = upto(static_cast<int>(snapshot_.nodes.size()));
      if (snapshot_.nodes[at].gpus > 0 && !shape_.workers_anywhere) continue;
      if (room_[at] < job.worker_millicores || !takes_memory(job, at)) continue;
      room_[at] -= job.worker_millicores;
      job.workers.push_back({job.id.name + "-worker-" + std::to_string(i), snapshot_.nodes[at].name, true,
                             kNowSeconds - 500 - upto(500), kNowSeconds - 400, false});
      ++job.allocated_workers;
    }
    if (!shape_.workers_anywhere) return;
    for (Worker& worker : job.workers) disturb(worker, job);
    if (upto(6) == 0) job.allocated_workers += upto(3);  // lost, or not created yet
  }

  bool takes_memory(const Job& job, int at) {
    const auto& all = snapshot_.nodes[at].free_memory_bytes;
    if (!all) return true;
    if (memory_used_[at] + job.worker_memory_bytes > *all) return false;
    memory_used_[at] += job.worker_memory_bytes;
    return true;
  }

  void disturb(Worker& worker, Job& job) {
    const int fate = upto(10);
    if (fate == 0) worker.draining = true, --job.allocated_workers;
    if (fate == 1) worker.ready = false;
    if (fate == 2) worker.ready = false, worker.node.clear();
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
    const double remote = static_cast<double>(job.allocated_workers * job.worker_millicores) / 1000;
    job.observation = {physics.steady(remote, kNowSeconds - 5), ""};
  }

 private:
  std::mt19937 random_;
  ClusterShape shape_;
  ClusterSnapshot snapshot_;
  std::vector<std::int64_t> room_;  // per node, as below
  std::vector<int> gpus_in_use_;
  std::map<int, std::int64_t> memory_used_;  // per node
};

}  // namespace

ClusterShape everything() {
  return {.missing_metrics = true,
          .priorities = true,
          .quotas = true,
          .gangs = true,
          .fixed_feeders = true,
          .worker_sizes = true,
          .workers_anywhere = true,
          .minima = true,
          .modes = true,
          .prices = true,
          .cheap_hosts = true,
          .budget = true,
          .cordoned = true,
          .groups = true,
          .memory = true,
          .networks = true};
}

ClusterSnapshot random_cluster(unsigned seed, const ClusterShape& shape) { return Maker(seed, shape).make(); }

namespace {

// The jobs as a metrics source would show them a window later, with other noise. `truth`: the same jobs, measured
// without.
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

}  // namespace

Churn churn_under_noise(unsigned seed, const ClusterShape& shape, const Config& config) {
  ClusterShape exact = shape;
  exact.noise = 0;
  const ClusterSnapshot truth = random_cluster(seed, exact);
  ClusterSnapshot snapshot = random_cluster(seed, shape);
  Churn churn;
  for (unsigned round = 0; round < 12; ++round) {
    const Plan plan = decide(snapshot, config);
    for (std::size_t i = 0; i < plan.jobs.size() && round >= 4; ++i) {
      const Job& job = job_of(snapshot, plan.jobs[i].id);
      churn.changed += std::abs(plan.jobs[i].workers - job.allocated_workers);
      churn.held += job.allocated_workers;
    }
    snapshot = observed_again(applied(snapshot, plan), truth, seed + round, shape.noise);
  }
  return churn;
}

}  // namespace sluice::scheduler::testing
