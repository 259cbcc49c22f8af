// The state of one run of simulate(), and its steps; engine.cc has the story, weather.cc the failures in it.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler/simulator/world/data_cache.h"
#include "scheduler/simulator/world/engine.h"
#include "scheduler/simulator/world/event_queue.h"
#include "scheduler/simulator/world/exporter.h"
#include "scheduler/simulator/world/simulated_cluster.h"

namespace sluice::simulator {

class Run {
 public:
  Run(const Cluster& cluster, const Workload& workload, scheduler::Policy& policy, const RunOptions& options)
      : truth_(cluster),
        physics_(cluster.physics),
        workload_(workload),
        policy_(policy),
        options_(options),
        cluster_(cluster, jobs_),
        snapshots_(cluster.physics),
        data_(cluster, workload, options.seed) {}

  Result<RunRecord> run();

 private:
  Result<void> prepare();
  void handle(const Event& event);
  void milestone(JobState& job);
  void set_cost_step(JobState& job, int step);
  void read_block(JobState& job, int block);
  void finish(JobState& job);
  void fail_trainer(JobState& job);
  void node_down(int node, std::uint64_t times);
  void node_up(int node, std::uint64_t times);
  void schedule_failure(int node, std::uint64_t times);
  void incident(const Incident& incident, bool begins);
  void request_admission();
  void admit();
  void start(JobState& job, std::vector<HostState> hosts);
  void activate(int index);
  void deactivate(int index);
  void decide();
  void plan_next_decision(bool anything_new);
  void refresh();
  std::vector<double> storage_ratios() const;
  void set_rates(JobState& job, double storage_ratio);
  void predict(JobState& job);
  void wake_for_workers(JobState& job);
  RunRecord record() const;

  const Cluster& truth_;
  const Physics& physics_;
  const Workload& workload_;
  scheduler::Policy& policy_;
  const RunOptions& options_;
  std::vector<JobState> jobs_;
  SimulatedCluster cluster_;
  Snapshots snapshots_;
  DataCache data_;
  EventQueue events_;
  double now_ = 0;
  std::vector<int> active_;   // waiting or running, ascending
  std::vector<int> running_;  // ascending
  std::vector<int> waiting_;  // in order of arrival
  std::vector<std::vector<TimelineStep>> timelines_;
  std::vector<double> next_wake_;
  int unfinished_ = 0;
  int metrics_lost_ = 0;
  bool admission_due_ = false;
  double admission_at_ = -1;
  bool decision_due_ = false;  // something has happened
  bool period_over_ = false;
  double decision_at_ = std::numeric_limits<double>::infinity();
  double period_ = 0;
  RunRecord totals_;
};

}  // namespace sluice::simulator
