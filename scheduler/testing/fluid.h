// A job as a fluid: the physics behind synthetic measurements. The scheduler sees only the counters.
//
//   supply S = mu_L l + mu_R r (1 - overhead);  x = S / D;  throughput T = D (1 + x^-q)^(-1/q)
//   the trainer waits 1 - T/D of its time; executors are busy T/S of theirs
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scheduler/decide/decide.h"

namespace sluice::scheduler::testing {

struct FluidJob {
  double demand = 1000;      // samples/s
  double local_rate = 1000;  // samples/s per core
  double remote_rate = 770;
  double local_cores = 1;
  double q = 6;
  double remote_overhead = 0;  // share of a worker's CPU that its executor does not see: transport
  double batch_size = 32;

  double supply(double remote_cores) const;
  double throughput(double remote_cores) const;
  double full_speed_fraction(double remote_cores) const { return throughput(remote_cores) / demand; }

  // The measurement after running unchanged for longer than the window.
  Measurement steady(double remote_cores, double window_end_seconds, double window_seconds = 15) const;
};

// Jobs, nodes and an operator in simulated time: one-second steps, a decision every interval. A worker starts to
// deliver startup_seconds after it was ordered; measurements end metrics_lag_seconds before the decision.
class FluidLoop {
 public:
  struct Timing {
    int decision_seconds = 5;
    int window_seconds = 10;
    int metrics_lag_seconds = 5;
    int startup_seconds = 10;
  };

  FluidLoop(std::vector<Node> nodes, Timing timing, Config config) : timing_(timing), config_(config) {
    snapshot_.nodes = std::move(nodes);
  }

  void add(Job job, FluidJob physics);
  void run(int seconds);

  FluidJob& physics(const std::string& name) { return runs_.at(name).physics; }
  void lose_metrics(bool lost) { metrics_lost_ = lost; }

  // For changes from outside: limits, nodes, jobs.
  ClusterSnapshot& snapshot() { return snapshot_; }

  int now_seconds() const { return now_seconds_; }
  int decisions() const { return decisions_; }
  const Plan& plan() const { return plan_; }
  const Job& job(const std::string& name) const;
  // Share of full speed right now.
  double speed(const std::string& name) const;
  // Changes of the number of workers so far.
  int changes(const std::string& name) const { return runs_.at(name).changes; }

 private:
  struct Counters {
    double samples = 0, compute = 0, wait = 0;
    SourceRate local, remote;  // totals, not rates
  };
  struct Run {
    FluidJob physics;
    std::vector<Counters> history;  // one per second
    int changes = 0;
  };

  double ready_cores(const Job& job) const;
  void step();
  void decide_now();
  Observation observe(const Run& run) const;

  Timing timing_;
  Config config_;
  ClusterSnapshot snapshot_;
  std::map<std::string, Run> runs_;
  Plan plan_;
  bool metrics_lost_ = false;
  int now_seconds_ = 0;
  int decisions_ = 0;
};

}  // namespace sluice::scheduler::testing
