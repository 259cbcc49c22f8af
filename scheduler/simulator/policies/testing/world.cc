#include "scheduler/simulator/policies/testing/world.h"

#include <algorithm>
#include <cstdint>

#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {

FluidJob kneed(int gpus, double cores_per_gpu) { return {.demand = 1000 * gpus * cores_per_gpu}; }

World& World::node(const std::string& name, int gpus, int cores) {
  Node node{.name = name, .allocatable_millicores = std::int64_t{1000} * cores};
  node.gpus = gpus;
  snapshot_.nodes.push_back(node);
  return *this;
}

World& World::job(const std::string& name, const std::string& host, int gpus, FluidJob physics) {
  auto node =
      std::find_if(snapshot_.nodes.begin(), snapshot_.nodes.end(), [&](const Node& n) { return n.name == host; });
  REQUIRE(node != snapshot_.nodes.end());
  const std::int64_t share = node->allocatable_millicores * gpus / node->gpus;
  Job job{.id = {"default", name}, .running = true};
  job.gpus = gpus;
  job.max_workers = 1000;
  job.hosts = {{.node = host, .gpus = gpus, .request_millicores = share, .limit_millicores = share}};
  job.local_adjustable = true;
  job.observation.missing_reason = "no metrics yet";
  snapshot_.jobs.push_back(job);
  physics_[name] = physics;
  return *this;
}

Job& World::at(const std::string& name) {
  return *std::find_if(snapshot_.jobs.begin(), snapshot_.jobs.end(),
                       [&](const Job& job) { return job.id.name == name; });
}

double World::ready_cores(const Job& job) const {
  double cores = 0;
  for (const Worker& worker : job.workers)
    cores += worker.ready ? static_cast<double>(job.worker_millicores) / 1000 : 0;
  return cores;
}

double World::speed(const std::string& name) {
  physics(name).local_cores = local_cores(name);
  return physics(name).full_speed_fraction(ready_cores(at(name)));
}

void World::measure() {
  for (Job& job : snapshot_.jobs) {
    FluidJob& physics = physics_.at(job.id.name);
    physics.local_cores = static_cast<double>(local_limit_millicores(job)) / 1000;
    const double remote = ready_cores(job);
    Measurement m = physics.steady(remote, snapshot_.taken_at_seconds, kStepSeconds);
    const double capacity = 16 * job.gpus;
    const double full = std::clamp(5 * (physics.supply(remote) / physics.demand - 0.9), 0.0, 1.0);
    m.queue = PrefetchQueue{capacity * full, capacity};
    job.observation = {m, ""};
    for (Worker& worker : job.workers) {
      if (worker.ready || worker.node.empty()) continue;
      worker.ready = true;
      worker.ready_since_seconds = snapshot_.taken_at_seconds;
    }
  }
}

void World::apply() {
  for (const JobPlan& plan : plan_.jobs) {
    Job& job = at(plan.id.name);
    std::erase_if(job.workers, [&](const Worker& worker) {
      return std::find(plan.victims.begin(), plan.victims.end(), worker.name) != plan.victims.end();
    });
    for (std::size_t i = 0; static_cast<int>(job.workers.size()) < plan.workers; ++i) {
      Worker worker{.name = "worker-" + std::to_string(next_worker_++), .node = plan.new_worker_nodes.at(i)};
      worker.created_at_seconds = snapshot_.taken_at_seconds;
      job.workers.push_back(worker);
    }
    job.allocated_workers = plan.workers;
    job.memory = plan.estimate.memory;
    for (TrainerHost& host : job.hosts) {
      if (!job.running) host.request_millicores = host.limit_millicores = 0;
    }
    for (std::size_t h = 0; h < plan.local.size(); ++h) {
      job.hosts[h].request_millicores = plan.local[h].request_millicores;
      job.hosts[h].limit_millicores = plan.local[h].limit_millicores;
    }
  }
}

void World::check() const {
  std::map<std::string, std::int64_t> used;
  REQUIRE(std::is_sorted(plan_.jobs.begin(), plan_.jobs.end(),
                         [](const JobPlan& a, const JobPlan& b) { return a.id < b.id; }));
  REQUIRE(plan_.jobs.size() == snapshot_.jobs.size());
  for (const Job& job : snapshot_.jobs) {
    REQUIRE(static_cast<int>(job.workers.size()) == job.allocated_workers);
    for (const Worker& worker : job.workers) used[worker.node] += job.worker_millicores;
    for (const TrainerHost& host : job.hosts) used[host.node] += host.request_millicores;
  }
  for (const Node& node : snapshot_.nodes) {
    INFO(node.name);
    REQUIRE(used[node.name] + node.requested_by_others_millicores <= node.allocatable_millicores);
  }
}

void World::run(Policy& policy, int decisions) {
  for (int i = 0; i < decisions; ++i) {
    plan_ = policy.decide(snapshot_);
    apply();
    check();
    snapshot_.taken_at_seconds += kStepSeconds;
    measure();
  }
}

Measurement measured_need(double knee_cores) {
  Measurement m{.window_end_seconds = 1000, .window_seconds = 30, .samples_per_second = 900 * knee_cores};
  m.compute_share = 0.9;
  m.wait_share = 0.1;
  m.batches_in_window = 1000;
  m.local = SourceRate{900 * knee_cores, 0.9 * knee_cores};
  return m;
}

}  // namespace sluice::scheduler::testing
