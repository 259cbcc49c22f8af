// A small cluster in simulated time, for tests of policies. Decisions come every 15 s, and workers are ready 15 s after
// they were ordered. Jobs are fluids (scheduler/testing/fluid.h); metrics are of the last 15 s, without noise.
//
// REQUIRES of every plan, checked at each step: one entry per job in order of id; no node over-committed; exactly the
// surplus workers as victims.
//
// Thread safety: none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/model/policy.h"
#include "scheduler/testing/fluid.h"

namespace sluice::scheduler::testing {

class World {
 public:
  static constexpr double kStepSeconds = 15;

  // A host with so many GPUs and cores; none: a node for data workers only.
  World& node(const std::string& name, int gpus, int cores);

  // A trainer on a host, with its GPU-proportional share. `physics.local_cores` is set from its grant.
  World& job(const std::string& name, const std::string& host, int gpus, FluidJob physics);

  void run(Policy& policy, int decisions);

  ClusterSnapshot& snapshot() { return snapshot_; }
  Job& at(const std::string& name);
  FluidJob& physics(const std::string& name) { return physics_.at(name); }
  int workers(const std::string& name) { return at(name).allocated_workers; }
  double local_cores(const std::string& name) { return static_cast<double>(local_limit_millicores(at(name))) / 1000; }
  double speed(const std::string& name);  // share of full speed with its present CPU
  const Plan& plan() const { return plan_; }

 private:
  void measure();
  void apply();
  void check() const;
  double ready_cores(const Job& job) const;

  ClusterSnapshot snapshot_;
  std::map<std::string, FluidJob> physics_;
  Plan plan_;
  int next_worker_ = 0;
};

// The measurement of a job whose trainer waits a tenth of its time and uses nine tenths of the local cores that it
// needs.
Measurement measured_need(double knee_cores);

// A job that so many local cores per GPU saturate; 1000 samples/s per local core, 770 per remote one.
FluidJob kneed(int gpus, double cores_per_gpu);

}  // namespace sluice::scheduler::testing
