// Small worlds and policies for tests of the simulator.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/model/policy.h"
#include "scheduler/simulator/report/experiment.h"
#include "scheduler/simulator/world/engine.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator::testing {

// Gives every running job the workers and CPU of `wish`; by default those that it has.
class ScriptedPolicy : public scheduler::Policy {
 public:
  using Wish = std::function<void(const scheduler::Job&, scheduler::JobPlan&)>;

  explicit ScriptedPolicy(Wish wish = nullptr) : wish_(std::move(wish)) {}

  std::string_view name() const override { return "scripted"; }

  scheduler::Plan decide(const scheduler::ClusterSnapshot& snapshot) override {
    last = snapshot;
    scheduler::Plan plan;
    for (const scheduler::Job& job : snapshot.jobs) {
      scheduler::JobPlan entry;
      entry.id = job.id;
      entry.workers = job.allocated_workers;
      for (const scheduler::TrainerHost& host : job.hosts)
        entry.local.push_back({host.node, host.request_millicores, host.limit_millicores});
      if (wish_ && job.running) wish_(job, entry);
      plan.jobs.push_back(std::move(entry));
    }
    return plan;
  }

  scheduler::ClusterSnapshot last;

 private:
  Wish wish_;
};

inline JobSpec job(double arrival, int gpus, double ideal, double knee, double gbps = 0) {
  JobSpec spec;
  spec.name = "job";
  spec.arrival_seconds = arrival;
  spec.gpus = gpus;
  spec.ideal_seconds = ideal;
  spec.knee_cores_per_gpu = knee;
  spec.network_gbps_per_gpu = gbps;
  return spec;
}

// Two hosts of 8 GPUs and 24 cores, one CPU-only node of 64.
inline Cluster small_cluster() {
  Cluster cluster;
  cluster.groups = {{"gpu", 2, 8, 24, 0, false}, {"cpu", 1, 0, 64, 0, false}};
  return cluster;
}

inline RunOptions with(std::vector<Incident> incidents) {
  RunOptions options;
  options.incidents = std::move(incidents);
  return options;
}

inline RunRecord run(const Cluster& cluster, const Workload& workload, ScriptedPolicy::Wish wish = nullptr,
                     const RunOptions& options = {}) {
  ScriptedPolicy policy(std::move(wish));
  auto record = simulate(cluster, workload, policy, options);
  REQUIRE(record.ok());
  CHECK(record->overcommitted_steps == 0);
  return std::move(record).value();
}

// A grid of made-up completion times: every policy's mean, the same for both seeds.
inline Grid grid_of(const std::vector<std::pair<std::string, double>>& completions) {
  Grid grid;
  for (const auto& [policy, seconds] : completions) {
    Figures figures{};
    figures.fill(1);
    at(figures, Figure::kMeanJct) = seconds;
    grid.policies.push_back(policy);
    grid.figures.push_back({figures, figures});
  }
  return grid;
}

}  // namespace sluice::simulator::testing
