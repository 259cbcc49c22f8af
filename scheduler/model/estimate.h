// The scheduler's knowledge of one job: its demand, the rate of a core, and how far that can be trusted.
//
// estimate/estimator.h makes it from a measurement and the memory of earlier ones; a plan carries it to status,
// metrics and the next decision.
//
// Thread safety: plain values.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "scheduler/model/config.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// How far the figures of an Estimate can be trusted.
enum class Confidence {
  kNone,      // nothing measured yet
  kAssumed,   // one of the service rates is not measured but derived from the other with Config::remote_efficiency
  kMeasured,  // demand and both service rates were measured (or no remote worker is needed, and the local one was)
};

// A job with a smaller knee needs next to no CPU: no ratio is made of it.
inline constexpr double kLeastKneeCores = 0.0005;

struct Estimate {
  // Why the metrics cannot be used; empty when they can. The fields up to `known` are meaningless when it is set.
  std::string metrics_problem;
  double unmeasured_seconds = 0;  // age of the last usable measurement, at least; 0 when the metrics can be used
  bool enough_batches = false;
  double wait_share = 0;        // wait / (wait + compute), 0..1
  bool starved = false;         // waits noticeably: the measured rate is the supply
  bool worth_probing = false;   // starved, and not by one late batch alone
  bool sated = false;           // practically never waits: the measured rate is the demand
  double busy_cores = 0;        // CPU at work on data, local and remote
  double busy_local_cores = 0;  // the feeders' part of it

  // True once there has been a demand and a service rate, now or earlier. The rates below are meaningless before.
  bool known = false;
  double demand_samples_per_second = 0;     // of the trainer if it never waited
  std::optional<double> remaining_seconds;  // to completion at full speed; none: its training loops do not say
  double local_rate_per_core = 0;           // samples/s per busy core of the feeder
  double remote_rate_per_core = 0;          // samples/s per busy core of a remote worker
  double knee_cores = 0;                    // local-equivalent CPU at which supply meets demand, with feedback
  double measured_knee_cores = 0;           // the same without feedback
  double local_cores = 0;                   // the reliable part of the feeders' CPU
  double local_held_cores = 0;              // the requests of the feeders
  bool feeders_seen = false;                // the window shows the feeders with that CPU, from its first second
  Confidence confidence = Confidence::kNone;
  std::optional<double> local_cap_cores;      // more than this, and the feeders slow their trainer down
  std::optional<double> useless_above_cores;  // remote cores beyond this number were tried, and brought no speed
  bool reads_limit = false;                   // it is as fast as its reads, whatever CPU it has: read_limit.h

  std::optional<EstimatorMemory> memory;  // to be handed back as Job::memory in the next snapshot

  bool metrics_usable() const { return metrics_problem.empty(); }
  bool was_measured() const { return memory && memory->was_measured; }  // now or earlier

  // Local-equivalent value of a remote core: mu_R / mu_L. REQUIRES: known
  double efficiency() const { return remote_rate_per_core / local_rate_per_core; }

  // Remote cores that cover the part of the knee that local cores leave, times headroom. REQUIRES: known
  double remote_cores_for(double knee, double headroom) const {
    return headroom * std::max(0.0, knee - local_cores) / efficiency();
  }

  // x with the job's present CPU, feeders by their request, as the plan counts where it sets their CPU. REQUIRES: known
  double held_supply_ratio(const Job& job) const { return held_supply_cores(job) / std::max(knee_cores, 1e-9); }

  // The same in local-equivalent cores. REQUIRES: known
  double held_supply_cores(const Job& job) const {
    return local_held_cores + efficiency() * job.allocated_workers * worker_cores(job);
  }

  // x with so many remote cores. Unknown rates: as if the present state were the knee (proportional start).
  double supply_ratio(double remote_cores, const Job& job, const Config& config) const;
};

}  // namespace sluice::scheduler
